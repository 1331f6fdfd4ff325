// Rung 1: a block per output channel, a thread per position.
//
// The definition, word by word. Its cost: `length` threads of a block work (8 of 32 lanes), each
// walks all in x taps weights alone, one dependent multiply-add after the other, and every lane
// loads the same weight, so a warp fetches four bytes at a time.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/conv1d.cuh"

namespace mjp::ladder {
namespace {

// grid (out, batch), block (length)
__global__ void Conv1dNaiveKernel(const Conv1dArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int o = blockIdx.x, n = blockIdx.y, l = threadIdx.x;
  float sum = a.bias[o];
  for (int i = 0; i < a.in; ++i) {
    for (int k = 0; k < a.taps; ++k) {
      const int from = l + k - a.taps / 2;
      if (from < 0 || from >= a.length) continue;
      sum += a.weight[(static_cast<size_t>(o) * a.in + i) * a.taps + k] *
             a.x[(static_cast<size_t>(n) * a.in + i) * a.length + from];
    }
  }
  a.y[(static_cast<size_t>(n) * a.out + o) * a.length + l] = sum;
}

}  // namespace

void Conv1dNaive(const Conv1dArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.out, a.batch);
  shape.block = dim3(a.length);
  Launch(Conv1dNaiveKernel, shape, stream, "naive conv1d", a);
}

}  // namespace mjp::ladder
