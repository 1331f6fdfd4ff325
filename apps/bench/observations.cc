#include "apps/bench/observations.h"

#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {

BenchObservations::BenchObservations(const mjp::PolicyConfig& config, int count) {
  for (int i = 0; i < count; ++i) {
    const State s = BenchmarkStart(static_cast<uint32_t>(i));
    for (int t = 0; t < config.n_obs_steps; ++t) {
      if (!config.cameras.empty()) scenes_.push_back(ToFlatScene(s));
      state_.insert(state_.end(), config.state_dim, static_cast<float>(s.agent_x));
      environment_.insert(environment_.end(), config.environment_dim,
                          static_cast<float>(s.block_x));
    }
    keys_.push_back({static_cast<uint64_t>(i), 0});
  }
  for (int i = 0; i < count * config.CondDim(); ++i)
    global_cond_.push_back(static_cast<float>(i % 17) / 8 - 1);
}

mjp::PolicyInput BenchObservations::Next() {
  for (mjp::NoiseKey& key : keys_) ++key.decision;
  mjp::PolicyInput input;
  input.count = static_cast<int>(keys_.size());
  input.scenes = mjp::SceneBytes(scenes_);
  input.state = state_;
  input.environment = environment_;
  input.keys = keys_;
  return input;
}

mjp::PolicyInput BenchObservations::NextChunk() {
  mjp::PolicyInput input = Next();
  input.scenes = {};
  input.global_cond = global_cond_;
  return input;
}

}  // namespace mjp::app
