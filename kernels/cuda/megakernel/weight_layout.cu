// Weights of the megakernel, reordered from the packed fragments.

#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp::megakernel {
namespace {

constexpr int kThreads = kFragmentBytes / sizeof(uint4);

// grid: (out tiles x K blocks, warps x k steps); CTA-local: (out / 32, warps x k steps).
// `shortcut`: the last tap is the shortcut's.
__global__ void __launch_bounds__(kThreads)
    ReorderWeightsKernel(const uint4* packed, uint4* ordered, bool cta_local, int k_blocks,
                         int taps, bool shortcut) {
  const int warp = blockIdx.y / kKSteps, k_step = blockIdx.y % kKSteps;
  const int blocks = k_blocks * kKSteps * 2, own_taps = taps - shortcut;
  const int out = cta_local ? blockIdx.x * 2 + warp % 2 : blockIdx.x / k_blocks * 4 + warp % 4;
  const int k_block = cta_local ? warp / 2 % 2 : blockIdx.x % k_blocks;
  const int in = (k_block * kKSteps + k_step) * 2 + warp / 4;
  const size_t to = static_cast<size_t>(blockIdx.x * kMmaWarps + warp) * kKSteps * taps;
  for (int tap = 0; tap < taps; ++tap) {
    const int at = tap < own_taps ? k_step * own_taps + tap : kKSteps * own_taps + k_step;
    const size_t from = (static_cast<size_t>(out) * blocks + in) * taps + tap;
    ordered[(to + at) * kThreads + threadIdx.x] = packed[from * kThreads + threadIdx.x];
  }
}

}  // namespace

void LaunchReorderWeights(const NormConvShape& s, bool cta_local, const void* packed,
                          void* ordered) {
  const int k_blocks = s.in_c / kBlockK;
  const dim3 grid(s.phases * s.out_c / kTileChannels * k_blocks, kMmaWarps * kKSteps);
  ReorderWeightsKernel<<<grid, kThreads>>>(static_cast<const uint4*>(packed),
                                           static_cast<uint4*>(ordered), cta_local, k_blocks,
                                           s.taps + s.shortcut, s.shortcut);
  CheckCuda(cudaGetLastError(), "packing of weights");
}

}  // namespace mjp::megakernel
