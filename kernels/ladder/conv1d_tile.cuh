#ifndef KERNELS_LADDER_CONV1D_TILE_CUH_
#define KERNELS_LADDER_CONV1D_TILE_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/conv1d.cuh"

// Rungs 2 and 3 are one kernel: `kOut` output channels of a block.

namespace mjp::ladder {

inline constexpr int kConv1dThreads = 128;

// grid (out / kOut, batch). Threads share the input channels; a thread keeps the sums of all
// positions of its channels in registers, and the block adds them up at the end.
template <int kOut>
__global__ void __launch_bounds__(kConv1dThreads) Conv1dTileKernel(const Conv1dArgs a) {
  constexpr int kL = kLadderLength, kTaps = kLadderTaps, kHalf = kTaps / 2;
  constexpr int kWarps = kConv1dThreads / 32;
  __shared__ float partial[kWarps][kOut * kL];
  WaitForPredecessor();
  ReleaseSuccessor();
  const int first = blockIdx.x * kOut, n = blockIdx.y;
  float sum[kOut][kL] = {};
  for (int i = threadIdx.x; i < a.in; i += kConv1dThreads) {
    float x[kL + 2 * kHalf] = {};  // with the padding
    const float* row = a.x + (static_cast<size_t>(n) * a.in + i) * kL;
#pragma unroll
    for (int l = 0; l < kL; ++l) x[kHalf + l] = row[l];
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      const float* weight = a.weight + (static_cast<size_t>(first + o) * a.in + i) * kTaps;
#pragma unroll
      for (int k = 0; k < kTaps; ++k) {
#pragma unroll
        for (int l = 0; l < kL; ++l) sum[o][l] += weight[k] * x[l + k];
      }
    }
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int e = 0; e < kOut * kL; ++e) {
    const float total = WarpSum(sum[e / kL][e % kL]);
    if (lane == 0) partial[warp][e] = total;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kOut * kL; e += kConv1dThreads) {
    float total = a.bias[first + e / kL];
    for (int w = 0; w < kWarps; ++w) total += partial[w][e];
    a.y[(static_cast<size_t>(n) * a.out + first) * kL + e] = total;
  }
}

template <int kOut>
void LaunchConv1dTile(const Conv1dArgs& a, const char* name, cudaStream_t stream) {
  if (a.length != kLadderLength || a.taps != kLadderTaps || a.out % kOut != 0)
    throw Unsupported("a rung of the ladder takes length 8, 5 taps and whole blocks of channels");
  LaunchShape shape;
  shape.grid = dim3(a.out / kOut, a.batch);
  shape.block = dim3(kConv1dThreads);
  Launch(Conv1dTileKernel<kOut>, shape, stream, name, a);
}

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_CONV1D_TILE_CUH_
