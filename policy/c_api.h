#ifndef POLICY_C_API_H_
#define POLICY_C_API_H_

/* A policy from C: load a checkpoint, turn observations into action chunks.
 *
 * A function that fails returns NULL or -1 and mjp_last_error() says why. Objects are independent,
 * and one object serves one thread at a time: a second one gets -1 while the first is in
 * mjp_infer. An mjp_policy* is a name that is never given twice, so an object that is freed
 * already, or was never loaded, is -1 too. A child made by fork() has to load its own. */

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MJP_API
#else
#define MJP_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with each change of a struct or a function here. A program that loads the library by name
 * compares it with mjp_abi_version() before anything else. */
#define MJP_ABI_VERSION 3

typedef struct mjp_policy mjp_policy;

/* Each struct begins with its size, so that a library of another version is noticed: start from
 * MJP_OPTIONS, MJP_SHAPE, MJP_FEATURE and MJP_OBSERVATION, as in `mjp_shape shape = MJP_SHAPE;`.
 *
 * How a policy runs. All else zero: backend and precision chosen here, sampler as the checkpoint
 * says, one environment, one thread. */
typedef struct mjp_options {
  size_t size;             /* sizeof(mjp_options) */
  const char* backend;     /* "auto", "cpu", "cuda"; NULL: auto */
  const char* precision;   /* "auto", "fp32", "tf32", "fp16", "bf16"; NULL: auto */
  const char* sampler;     /* "ddpm", "ddim"; NULL: as the checkpoint says, or it has none */
  int steps;               /* of denoising; 0: as the checkpoint says, or it has none */
  int batch;               /* most environments of one mjp_infer, to 4096; 0: 1 */
  int threads;             /* of the CPU backend; results do not depend on them; 0: 1 */
  const char* instruction; /* what to do, in words: of a policy that reads it; NULL: of none */
} mjp_options;
#define MJP_OPTIONS \
  { sizeof(mjp_options), NULL, NULL, NULL, 0, 0, 0, NULL }

/* Sizes of observations and actions. */
typedef struct mjp_shape {
  size_t size;           /* sizeof(mjp_shape) */
  int observation_steps; /* To: an observation holds so many control steps, oldest first */
  int state_dim;         /* numbers of state per step; 0: none */
  int environment_dim;   /* numbers of environment state per step; 0: none */
  int cameras;           /* pictures per step */
  int picture_height;    /* of each camera's picture; 0 without cameras */
  int picture_width;
  size_t picture_bytes; /* of all cameras of one step together: height x width x RGB each */
  int horizon;          /* H: actions in a chunk */
  int action_dim;
  int first_action; /* actions first_action ... first_action + action_steps - 1 are executed */
  int action_steps;
  int features; /* how many mjp_feature_at knows */
  /* How the checkpoint wants to be executed: a decision every decision_steps control steps, of
   * which noise_decisions one after the other share their noise, and mjp_follow after each. */
  int decision_steps;
  int noise_decisions;
} mjp_shape;
#define MJP_SHAPE \
  { sizeof(mjp_shape), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* One input or output of the policy, and the range that its training had. Pointers are valid until
 * mjp_free. */
typedef struct mjp_feature {
  size_t size;               /* sizeof(mjp_feature) */
  const char* name;          /* "observation.images.top", "observation.state", "action" */
  int dim;                   /* numbers per step; 3 for a picture */
  int height, width;         /* of a picture; 0 for numbers */
  const char* normalization; /* "MIN_MAX", "MEAN_STD", "QUANTILES", ... or "IDENTITY" */
  const float* low;          /* dim numbers, raw units: the minimum, mean or lower quantile; NULL
                                where there are none */
  const float* high;         /* the maximum, standard deviation or upper quantile */
} mjp_feature;
#define MJP_FEATURE \
  { sizeof(mjp_feature), NULL, 0, 0, 0, NULL, NULL, NULL }

/* Observations of `count` environments; NULL for what the policy does not have: anything else is
 * refused. */
typedef struct mjp_observation {
  size_t size;              /* sizeof(mjp_observation) */
  int count;                /* 1 ... batch */
  const uint8_t* pictures;  /* (count, To, cameras, height, width, 3) */
  const float* state;       /* (count, To, state_dim), raw units */
  const float* environment; /* (count, To, environment_dim), raw units */
  const uint64_t* seeds;    /* (count): of the episodes; with `decisions` they name the noise; where
                               a policy draws none both may be NULL */
  const uint32_t* decisions; /* (count): index of the decision in its episode. Of a robot that
                                decides every decision_steps control steps: that index divided by
                                noise_decisions, as `mjpolicy evaluate` does, so that differences of
                                noise make no robot waver */
} mjp_observation;
#define MJP_OBSERVATION \
  { sizeof(mjp_observation), 0, NULL, NULL, NULL, NULL, NULL }

/* MJP_ABI_VERSION of the library. */
MJP_API int mjp_abi_version(void);

/* Loads a checkpoint directory. `options` may be NULL. */
MJP_API mjp_policy* mjp_load(const char* directory, const mjp_options* options);

/* Fills `shape`; 0 or -1. */
MJP_API int mjp_describe(const mjp_policy* policy, mjp_shape* shape);

/* Fills `feature` with the feature `index`, 0 ... mjp_shape.features - 1: the cameras in the order
 * of the pictures, the state, the environment state, the action; 0 or -1. */
MJP_API int mjp_feature_at(const mjp_policy* policy, int index, mjp_feature* feature);

/* Writes the action chunks, (count, H, action_dim) in raw units, to `actions`, which has room for
 * `capacity` numbers; 0 or -1. The same observations, seeds and decisions give the same bits. */
MJP_API int mjp_infer(mjp_policy* policy, const mjp_observation* observation, float* actions,
                      size_t capacity);

/* Which chunks `count` robots follow that decide every decision_steps control steps. One goes on
 * with the chunk that it took, for up to action_steps control steps, unless an action of the new
 * chunk departs from that for the same moment by more than the checkpoint's replan_beyond
 * (docs/CHECKPOINTS.md, "How it is executed").
 *
 * `chunks` (count, H, action_dim): in, what mjp_infer wrote; out, what the robots follow now: the
 * first decision_steps actions from first_action on are to be executed. `before`, likewise: what
 * the call before wrote to `chunks`, in memory of its own. `ages` (count): control steps between
 * the observation that each chunk of `before` answers and the last decision, below H; -1: that
 * robot has no chunk; out, the same of `chunks`. `before` may be NULL where all are -1, at an
 * episode's start. 0 or -1.
 *
 * A checkpoint of ACT with temporal_ensemble_coeff is refused: what is executed there is a mean of
 * chunks (docs/CHECKPOINTS.md, "act"), which a program makes of those that mjp_infer writes. */
MJP_API int mjp_follow(const mjp_policy* policy, int count, const float* before, int* ages,
                       float* chunks);

/* Ends a policy; 0 or -1. NULL is fine. Not while another thread is in mjp_infer with it. */
MJP_API int mjp_free(mjp_policy* policy);

/* Why the last call of this thread failed; valid until its next call. */
MJP_API const char* mjp_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* POLICY_C_API_H_ */
