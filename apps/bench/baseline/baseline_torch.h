#ifndef APPS_BENCH_BASELINE_BASELINE_TORCH_H_
#define APPS_BENCH_BASELINE_BASELINE_TORCH_H_

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "apps/bench/baseline/baseline.h"
#include "apps/train/network/network.h"
#include "policy/checkpoint/network.h"

// The baseline "torch": the U-Net, the picture encoder and the large transformers through libtorch.

namespace mjp::app {

// A network pass: x (B, H, A) at timesteps (B) -> (B, H, A).
using TorchPass = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& step)>;

// What a chunk of the DDPM takes: a pass and a denoising step, `steps` times. The arithmetic of the
// steps is that of a DDPM, their constants are not.
class TorchChain {
 public:
  // From x (B, H, A), on its device and in its type.
  TorchChain(int steps, const at::Tensor& x);
  at::Tensor Run(const TorchPass& pass) const;

 private:
  at::Tensor x_, noise_;
  std::vector<at::Tensor> timesteps_;  // each (B)
};

// The U-Net of `network` under the names that libtorch's asks for: LeRobot's, whatever its type.
Architecture ArchitectureOf(const mjp::Checkpoint& network);

// Of the first camera's pictures as the encoder takes them: (frames, 3, height, width).
std::vector<int64_t> PictureShape(const mjp::UnetPolicyConfig& config, int64_t frames);

// Whether `suite` was named.
bool AsksFor(const BenchOptions& options, const std::string& suite);

// Whether the suites that were named are those of the large transformers and no other.
bool AsksForTransformersAlone(const BenchOptions& options);

// Append the rows on the CPU, in fp32 with options.policy.threads threads, or on the GPU.
void AddTorchRowsCpu(const BenchOptions& options, BenchRows& rows);
void AddTorchRowsCuda(const BenchOptions& options, BenchRows& rows);

}  // namespace mjp::app

#endif  // APPS_BENCH_BASELINE_BASELINE_TORCH_H_
