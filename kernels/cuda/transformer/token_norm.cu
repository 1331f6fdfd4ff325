// Residual sum and LayerNorm, a warp for each row: the row stays in registers, four neighbours of a
// lane in one access, and both sums of the norm are trees over the warp. Two passes over the
// registers (mean, then squares of the differences), as the definition has it. Bound by launch for
// few rows; by memory for many: 14 bytes of an element in 16-bit formats.

#include <string>

#include "base/error.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/transformer/token_norm.cuh"
#include "kernels/cuda/transformer/token_norm_row.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;

// grid: rows / kWarps
template <typename T, int kFours>
__global__ void __launch_bounds__(kThreads) TokenNormKernel(const TokenNormArgs a) {
  const NormWeights<kFours> weights(a);
  ReleaseSuccessor();
  WaitForPredecessor();
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= a.rows) return;
  NormRow<T, kFours>(a, weights, row, [&](int column, const float4& y) {
    const size_t at = static_cast<size_t>(row) * a.width + column;
    if (a.normed != nullptr) *reinterpret_cast<float4*>(a.normed + at) = y;
    if (a.y != nullptr) *reinterpret_cast<Pack<T, 4>*>(static_cast<T*>(a.y) + at) = PackFour<T>(y);
  });
}

template <typename T>
void LaunchTyped(const TokenNormArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.rows + kWarps - 1) / kWarps);
  shape.block = dim3(kThreads);
  const auto launch = [&](auto kernel) { Launch(kernel, shape, stream, "norm of tokens", a); };
  if (a.width <= 4 * kLaneFours) return launch(TokenNormKernel<T, 4>);
  if (a.width <= 8 * kLaneFours) return launch(TokenNormKernel<T, 8>);
  launch(TokenNormKernel<T, 16>);
}

}  // namespace

void LaunchTokenNorm(Format format, const TokenNormArgs& args, cudaStream_t stream) {
  if (args.width % 8 != 0 || args.width > 16 * kLaneFours)
    throw Unsupported("transformer of width " + std::to_string(args.width) +
                      ": the GPU kernels take multiples of 8 up to 2048; use the CPU backend");
  if (format == Format::kFp16) return LaunchTyped<__half>(args, stream);
  if (format == Format::kBf16) return LaunchTyped<__nv_bfloat16>(args, stream);
  LaunchTyped<float>(args, stream);
}

}  // namespace mjp
