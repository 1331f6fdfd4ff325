/* Asks a checkpoint for one chunk of actions on a grey picture and prints the first of them. */

#include <math.h>
#include <mjpolicy/mjpolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int Fail(void) {
  fprintf(stderr, "%s\n", mjp_last_error());
  return 1;
}

int main(int argc, char** argv) {
  mjp_options options = MJP_OPTIONS;
  options.backend = "cpu";
  options.sampler = "ddim";
  options.steps = 2;
  mjp_policy* policy = mjp_load(argc > 1 ? argv[1] : "absent", &options);
  mjp_shape shape = MJP_SHAPE;
  if (policy == NULL || mjp_describe(policy, &shape) != 0) return Fail();

  const size_t bytes = shape.observation_steps * shape.picture_bytes;
  const size_t actions = (size_t)shape.horizon * shape.action_dim;
  uint8_t* pictures = malloc(bytes);
  float* state = calloc(shape.observation_steps * shape.state_dim + 1, sizeof(float));
  float* chunk = malloc(actions * sizeof(float));
  const uint64_t seed = 1;
  const uint32_t decision = 0;
  mjp_observation observation = MJP_OBSERVATION;
  observation.count = 1;
  observation.pictures = pictures;
  observation.state = state;
  observation.seeds = &seed;
  observation.decisions = &decision;
  memset(pictures, 128, bytes);
  const int code = mjp_infer(policy, &observation, chunk, actions);
  if (code == 0) printf("%.9g %.9g\n", chunk[0], chunk[1]);
  const int finite = code == 0 && isfinite(chunk[0]) && isfinite(chunk[1]);
  if (code != 0) Fail();
  free(pictures);
  free(state);
  free(chunk);
  mjp_free(policy);
  return finite ? 0 : 1;
}
