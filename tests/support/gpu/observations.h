#ifndef TESTS_SUPPORT_GPU_OBSERVATIONS_H_
#define TESTS_SUPPORT_GPU_OBSERVATIONS_H_

#include <vector>

#include "policy/policy.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp_test {

// The same observation of Push-T, as scenes, for every environment of a batch.
struct Observations {
  explicit Observations(int count)
      : scenes(2 * count, mjp::FlatScene{100, 150, 250, 300, 0.5f}),
        state(4 * count, 200.0f),
        keys(count, {7, 3}) {
    input.count = count;
    input.scenes = mjp::SceneBytes(scenes);
    input.state = state;
    input.keys = keys;
  }
  std::vector<mjp::FlatScene> scenes;
  std::vector<float> state;
  std::vector<mjp::NoiseKey> keys;
  mjp::PolicyInput input;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_OBSERVATIONS_H_
