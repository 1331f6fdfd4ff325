// Weights of the wide chain, from those of the other fused kernels.

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {
namespace {

constexpr int kThreads = kFragmentBytes / sizeof(uint4);

// grid: (out tiles x fillings, warps x pieces); of items made whole (out / 32, warps x pieces).
// `beside`: the last tap is the 1x1's.
__global__ void __launch_bounds__(kThreads)
    WidePackKernel(const uint4* packed, uint4* ordered, bool whole, int fillings, int taps,
                   bool beside) {
  const int warp = blockIdx.y / kWidePieces, piece = blockIdx.y % kWidePieces;
  const int blocks = fillings * kWidePieces * 2, own_taps = taps - beside;
  const int out = whole ? blockIdx.x * 2 + warp % 2 : blockIdx.x / fillings * 4 + warp % 4;
  const int filling = whole ? warp / 2 % 2 : blockIdx.x % fillings;
  const int in = (filling * kWidePieces + piece) * 2 + warp / 4;
  const size_t to = static_cast<size_t>(blockIdx.x * kChainWarps + warp) * kWidePieces * taps;
  for (int tap = 0; tap < taps; ++tap) {
    const int at = tap < own_taps ? piece * own_taps + tap : kWidePieces * own_taps + piece;
    const size_t from = (static_cast<size_t>(out) * blocks + in) * taps + tap;
    ordered[(to + at) * kThreads + threadIdx.x] = packed[from * kThreads + threadIdx.x];
  }
}

}  // namespace

void LaunchWidePack(const FusedConvShape& s, bool whole, const void* packed, void* ordered) {
  const int fillings = s.in_c / kWideFilling;
  const dim3 grid(s.phases * s.out_c / kWideTile * fillings, kChainWarps * kWidePieces);
  WidePackKernel<<<grid, kThreads>>>(static_cast<const uint4*>(packed),
                                     static_cast<uint4*>(ordered), whole, fillings,
                                     s.taps + s.residual, s.residual);
  CheckCuda(cudaGetLastError(), "packing of weights");
}

}  // namespace mjp
