#ifndef DIFFUSION_POLICY_POLICY_H_
#define DIFFUSION_POLICY_POLICY_H_

/* A diffusion policy from C: load a checkpoint, turn observations into action chunks.
 *
 * A function that fails returns NULL or -1 and dp_last_error() says why. Objects are independent;
 * one object must not be used by two threads at once. */

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define DP_API
#else
#define DP_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dp_policy dp_policy;

/* How a policy runs. All zero: backend and precision chosen here, sampler as the checkpoint says,
 * one environment, one thread. */
typedef struct dp_options {
  const char* backend;   /* "auto", "cpu", "cuda"; NULL: auto */
  const char* precision; /* "auto", "fp32", "tf32", "fp16", "bf16"; NULL: auto */
  const char* sampler;   /* "ddpm", "ddim"; NULL: as the checkpoint says */
  int steps;             /* of denoising; 0: as the checkpoint says */
  int batch;             /* most environments of one dp_infer; 0: 1 */
  int threads;           /* of the CPU backend; results do not depend on them; 0: 1 */
} dp_options;

/* Sizes of observations and actions. */
typedef struct dp_shape {
  int observation_steps; /* To: an observation holds so many control steps, oldest first */
  int state_dim;         /* numbers of state per step; 0: none */
  int environment_dim;   /* numbers of environment state per step; 0: none */
  int cameras;           /* pictures per step */
  size_t picture_bytes;  /* of all cameras of one step together: height x width x RGB each */
  int horizon;           /* H: actions in a chunk */
  int action_dim;
  int first_action; /* actions first_action ... first_action + action_steps - 1 are executed */
  int action_steps;
} dp_shape;

/* Observations of `count` environments; NULL for what the policy does not have. */
typedef struct dp_observation {
  int count;                 /* 1 ... batch */
  const uint8_t* pictures;   /* (count, To, cameras, height, width, 3) */
  const float* state;        /* (count, To, state_dim), raw units */
  const float* environment;  /* (count, To, environment_dim), raw units */
  const uint64_t* seeds;     /* (count): of the episodes; with `decisions` they name the noise */
  const uint32_t* decisions; /* (count): index of the decision in its episode */
} dp_observation;

/* Loads a checkpoint directory. `options` may be NULL. */
DP_API dp_policy* dp_load(const char* directory, const dp_options* options);

/* Fills `shape`; 0 or -1. */
DP_API int dp_describe(const dp_policy* policy, dp_shape* shape);

/* Writes the action chunks, (count, H, action_dim) in raw units, to `actions`, which has room for
 * `capacity` numbers; 0 or -1. The same observations, seeds and decisions give the same bits. */
DP_API int dp_infer(dp_policy* policy, const dp_observation* observation, float* actions,
                    size_t capacity);

/* Ends a policy; NULL is fine. */
DP_API void dp_free(dp_policy* policy);

/* Why the last call of this thread failed; valid until its next call. */
DP_API const char* dp_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* DIFFUSION_POLICY_POLICY_H_ */
