#include "apps/train/optimisation/device.h"

#include <regex>

#include "base/error.h"
#if MJPOLICY_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>
#include <torch/cuda.h>
#endif

namespace mjp::app {

at::Device ChooseDevice(const std::string& name, const Ranks& ranks) {
#if MJPOLICY_HAVE_CUDA
  const bool available = torch::cuda::is_available();
#else
  const bool available = false;
#endif
  const auto own = static_cast<c10::DeviceIndex>(ranks.rank());
  if (name == "auto") return available ? at::Device(at::kCUDA, own) : at::Device(at::kCPU);
  static const std::regex known("cpu|cuda(:(0|[1-9][0-9]?))?");
  if (!std::regex_match(name, known)) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     "--device is \"" + name + "\": choose auto, cuda, cuda:<index> or cpu");
  }
  const at::Device device = name == "cuda" ? at::Device(at::kCUDA, own) : at::Device(name);
  if (device.is_cuda() && !available) {
    throw mjp::EnvironmentError("--device " + name +
                                ": no usable GPU here; use --device cpu, or look at nvidia-smi");
  }
  return device;
}

#if MJPOLICY_HAVE_CUDA
OwnStream::OwnStream(const at::Device& device) {
  if (device.is_cuda()) guard_.emplace(c10::cuda::getStreamFromPool(true, device.index()));
}
#else
OwnStream::OwnStream(const at::Device&) {}
#endif

}  // namespace mjp::app
