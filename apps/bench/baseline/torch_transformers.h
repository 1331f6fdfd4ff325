#ifndef APPS_BENCH_BASELINE_TORCH_TRANSFORMERS_H_
#define APPS_BENCH_BASELINE_TORCH_TRANSFORMERS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

// ACT and the diffusion transformer through libtorch, at LeRobot's default sizes, in the shapes of
// its layers, with random weights.

namespace mjp::app {

// Pictures (B, 3, 480, 640) to chunks (B, 100, 14).
using TorchActPass = std::function<at::Tensor(const at::Tensor& pictures)>;
// Weights of the device and type of `options`; those of convolutions channel-last or not.
TorchActPass MakeTorchAct(const at::TensorOptions& options, bool channels_last);

inline constexpr int64_t kTorchDitHorizon = 32, kTorchDitActions = 2, kTorchDitCondition = 2564;

// A pass over x (B, 32, 2) at timesteps (B), with the condition (B, 2564): (B, 32, 2).
using TorchDitPass = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& step,
                                              const at::Tensor& condition)>;
TorchDitPass MakeTorchDit(const at::TensorOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_BASELINE_TORCH_TRANSFORMERS_H_
