#ifndef KERNELS_LADDER_CONV1D_CUH_
#define KERNELS_LADDER_CONV1D_CUH_

#include <cuda_runtime_api.h>

// How the one-dimensional convolution became fast, a rung per file, from the first correct kernel
// to the shipped launcher (kernels/cuda/conv/conv.cuh). `mjpolicy bench ladder` times them side by
// side. Nothing but the bench and the tests uses the
// rungs.

namespace mjp::ladder {

// "Same" convolution in float32, channels first: y[n][o][l] = bias[o] + sum over i, k of
// weight[o][i][k] x[n][i][l + k - taps / 2].
struct Conv1dArgs {
  int batch = 1, in = 0, out = 0, length = 0, taps = 0;
  const float* x = nullptr;       // (batch, in, length)
  const float* weight = nullptr;  // (out, in, taps)
  const float* bias = nullptr;    // (out)
  float* y = nullptr;             // (batch, out, length)
};

// What the later rungs are compiled for; the first takes up to 1,024 positions. All take up to
// 65,535 rows.
inline constexpr int kLadderLength = 8, kLadderTaps = 5;

void Conv1dNaive(const Conv1dArgs& args, cudaStream_t stream);   // conv1d_1_naive.cu
void Conv1dReduce(const Conv1dArgs& args, cudaStream_t stream);  // conv1d_2_reduce.cu
void Conv1dTile(const Conv1dArgs& args, cudaStream_t stream);    // conv1d_3_tile.cu; out: in fours

}  // namespace mjp::ladder

#endif  // KERNELS_LADDER_CONV1D_CUH_
