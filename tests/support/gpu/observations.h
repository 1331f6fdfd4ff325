#ifndef TESTS_SUPPORT_GPU_OBSERVATIONS_H_
#define TESTS_SUPPORT_GPU_OBSERVATIONS_H_

#include <vector>

#include "policy/policy.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"

namespace mjp_test {

// The same observation for every environment of a batch.
struct Observations {
  // Of Push-T, as scenes.
  explicit Observations(int count)
      : scenes(2 * count, mjp::FlatScene{100, 150, 250, 300, 0.5f}), state(4 * count, 200.0f) {
    Fill(count);
  }
  // Of any policy, as pictures. One that reads texts reads the first two words.
  Observations(const mjp::Checkpoint& checkpoint, int count) {
    const mjp::PolicyConfig& config = checkpoint.config;
    const size_t steps = config.n_obs_steps;
    for (size_t i = 0; i < count * steps; ++i) {
      for (const mjp::CameraFeature& camera : config.cameras) {
        for (size_t k = 0; k < size_t{3} * camera.height * camera.width; ++k)
          frames.push_back(static_cast<uint8_t>(k * 7 + k / 288 * 3));
      }
    }
    state.assign(count * steps * config.state_dim, 0.25f);
    environment.assign(count * steps * config.environment_dim, 0.5f);
    if (checkpoint.network->text_tokens() > 1) instruction_ids.assign(count, {0, 1});
    Fill(count);
  }
  // `input` is of the members.
  Observations(const Observations&) = delete;
  Observations& operator=(const Observations&) = delete;

  std::vector<mjp::FlatScene> scenes;
  std::vector<uint8_t> frames;
  std::vector<float> state, environment;
  std::vector<std::vector<int>> instruction_ids;
  std::vector<mjp::NoiseKey> keys;
  mjp::PolicyInput input;

 private:
  void Fill(int count) {
    keys.assign(count, {7, 3});
    input.count = count;
    input.scenes = mjp::SceneBytes(scenes);
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    input.instruction_ids = instruction_ids;
    input.keys = keys;
  }
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_OBSERVATIONS_H_
