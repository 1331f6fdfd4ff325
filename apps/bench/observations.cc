#include "apps/bench/observations.h"

#include <algorithm>

#include "policy/checkpoint/network_model.h"
#include "tasks/pusht/physics/reset.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/raster_source.h"

namespace mjp::app {

namespace {

// Whether the policy's pictures are those that Push-T's drawer draws.
bool TakesScenes(const mjp::PolicyConfig& config) {
  const mjp::SceneDrawer& drawer = mjp::FlatSceneDrawer();
  return config.cameras.size() == 1 && config.cameras[0].width == drawer.width() &&
         config.cameras[0].height == drawer.height();
}

}  // namespace

BenchObservations::BenchObservations(const mjp::Checkpoint& checkpoint, int count,
                                     ObservedPictures pictures) {
  const mjp::PolicyConfig& config = checkpoint.config;
  const bool scenes = pictures == ObservedPictures::kScenes && TakesScenes(config);
  std::vector<uint8_t> frames;
  for (int i = 0; i < count; ++i) {
    const State s = BenchmarkStart(static_cast<uint32_t>(i));
    for (int t = 0; t < config.n_obs_steps; ++t) {
      if (scenes) scenes_.push_back(ToFlatScene(s));
      for (const mjp::CameraFeature& camera : config.cameras) {
        for (int k = 0; !scenes && k < camera.height * camera.width * 3; ++k)
          frames.push_back(static_cast<uint8_t>((k * 7 + i * 31 + t * 3) % 256));
      }
      state_.insert(state_.end(), config.state_dim, static_cast<float>(s.agent_x));
      environment_.insert(environment_.end(), config.environment_dim,
                          static_cast<float>(s.block_x));
    }
    keys_.push_back({static_cast<uint64_t>(i), 0});
    if (checkpoint.network->text_tokens() > 2) instructions_.push_back({0, 1, 2});
  }
  frames_ = {frames.size(), pictures == ObservedPictures::kPageLocked};
  std::copy(frames.begin(), frames.end(), frames_.data());
  for (int i = 0; i < count * checkpoint.network->cond_dim(); ++i)
    global_cond_.push_back(static_cast<float>(i % 17) / 8 - 1);
}

mjp::PolicyInput BenchObservations::Next() {
  for (mjp::NoiseKey& key : keys_) ++key.decision;
  mjp::PolicyInput input;
  input.count = static_cast<int>(keys_.size());
  input.scenes = mjp::SceneBytes(scenes_);
  input.frames = frames_.bytes();
  input.state = state_;
  input.environment = environment_;
  input.keys = keys_;
  input.instruction_ids = instructions_;
  return input;
}

mjp::PolicyInput BenchObservations::NextChunk() {
  mjp::PolicyInput input = Next();
  if (global_cond_.empty()) return input;
  input.scenes = {};
  input.frames = {};
  input.instruction_ids = {};
  input.global_cond = global_cond_;
  return input;
}

}  // namespace mjp::app
