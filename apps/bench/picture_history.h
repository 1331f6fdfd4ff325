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
  // For a policy of `config` on the GPU `cuda_device`, or negative. Throws Error where it wants
  // other pictures than MuJoCo's renderer draws of Push-T.
  BenchPictureHistory(const mjp::PolicyConfig& config, int count, int cuda_device);

  // Draws a picture of each of `count` environments, which becomes the newest of its frames.
  void Draw();
  // Makes them the pictures of `input`.
  void Show(mjp::PolicyInput& input) const;
  // Whether they are left in the GPU's memory.
  bool on_gpu() const { return on_gpu_; }

 private:
  ModelPtr model_;
  DataPtr data_;
  Scene scene_;
  std::unique_ptr<mjp::PictureSource> source_;
  size_t picture_bytes_ = 0, count_, steps_;
  uint32_t drawn_ = 0;
  bool on_gpu_ = false;
  std::vector<uint8_t> frames_;  // (count, n_obs_steps, height, width, 3), or
  std::vector<std::shared_ptr<const mjp::GpuPicture>> gpu_pictures_;  // (count, n_obs_steps)
};

}  // namespace mjp::app

#endif  // APPS_BENCH_PICTURE_HISTORY_H_
