#ifndef APPS_BENCH_PICTURE_HISTORY_H_
#define APPS_BENCH_PICTURE_HISTORY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plugin/pictures/picture_source.h"
#include "policy/policy.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

// The frames of decisions by MuJoCo's renderer, drawn one by one as a simulation goes on.
class BenchPictureHistory {
 public:
  // Throws Error where `config` wants other pictures than MuJoCo's renderer draws of Push-T.
  BenchPictureHistory(const mjp::PolicyConfig& config, int count);

  // Draws a picture of each of `count` environments, which becomes the newest of its frames.
  void Draw();
  // The frames (count, n_obs_steps, height, width, 3).
  std::span<const uint8_t> frames() const { return frames_; }

 private:
  ModelPtr model_;
  DataPtr data_;
  Scene scene_;
  std::unique_ptr<mjp::PictureSource> source_;
  size_t picture_bytes_ = 0, count_, steps_;
  uint32_t drawn_ = 0;
  std::vector<uint8_t> frames_;
};

}  // namespace mjp::app

#endif  // APPS_BENCH_PICTURE_HISTORY_H_
