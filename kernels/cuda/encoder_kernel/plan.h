#ifndef KERNELS_CUDA_ENCODER_KERNEL_PLAN_H_
#define KERNELS_CUDA_ENCODER_KERNEL_PLAN_H_

#include <optional>
#include <vector>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/encoder_kernel/encoder_kernel.cuh"

// How the encoder kernel runs a network: a function of sizes alone, made on the host.

namespace mjp::encoder_kernel {

// A convolution of the network with its norm, sizes and all.
struct Convolution {
  ConvShape shape;
  const void* weight = nullptr;
  const float* bias = nullptr;  // the kernel takes none
  int groups = 0;
  const float *scale = nullptr, *shift = nullptr;
};

struct Block {
  std::optional<Convolution> shortcut;
  Convolution first, second;
};

// A stem, ReLU(norm(conv)) without a pool behind it, or none; then residual blocks.
struct Encoder {
  std::optional<Convolution> stem = {};
  std::vector<Block> blocks = {};
};

// Layers and shared memory for clusters of `ctas` CTAs; x, y and pictures are the caller's. None
// where the kernel does not take the network, or a CTA has less than it needs of `shared_bytes`.
std::optional<Args> Plan(const Encoder& encoder, int ctas, int shared_bytes);

// The same for `pictures` pictures on this GPU: clusters of 16 CTAs, or of 8 where it has no room
// for one of 16. None also on GPUs whose clusters are smaller, for which there is no code, and
// where launches for each convolution are faster: from more pictures on than the clusters that run
// at once take in two turns. Throws Error.
std::optional<Args> PlanHere(Format format, const Encoder& encoder, int pictures);

}  // namespace mjp::encoder_kernel

#endif  // KERNELS_CUDA_ENCODER_KERNEL_PLAN_H_
