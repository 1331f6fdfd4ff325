#ifndef APPS_TRAIN_OPTIMISATION_DEVICE_H_
#define APPS_TRAIN_OPTIMISATION_DEVICE_H_

#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "apps/train/optimisation/ranks.h"
#if MJPOLICY_HAVE_CUDA
#include <c10/cuda/CUDAGuard.h>
#endif

namespace mjp::app {

// The device that --device names: auto, cuda, cuda:<index> or cpu. Throws Error where there is no
// such.
at::Device ChooseDevice(const std::string& name, const Ranks& ranks);

// All work of a training run goes to one stream of its own: a CUDA graph cannot be captured on the
// default one.
class OwnStream {
 public:
  explicit OwnStream(const at::Device& device);

#if MJPOLICY_HAVE_CUDA
 private:
  std::optional<c10::cuda::CUDAStreamGuard> guard_;
#endif
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_DEVICE_H_
