// Rung 2: one launch, a block per group: the statistics stay in the block, the normalised value in
// a register on its way to Mish. x comes from memory once and from the cache twice more. The
// shipped kernel (kernels/cuda/norm/group_norm.cu) keeps a thread's share in registers as packs of
// eight, gives small groups to a warp, and applies FiLM and the residual too; in small batches the
// norm is no launch at all, the convolution's epilogue applies it (kernels/cuda/row_kernel).

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/group_norm_mish.cuh"
#include "kernels/ladder/group_sum.cuh"

namespace mjp::ladder {
namespace {

// grid (batch x groups)
__global__ void GroupNormMishKernel(const GroupNormMishArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int channels = a.channels / a.groups, count = channels * a.length;
  const size_t base = static_cast<size_t>(blockIdx.x) * count;
  const int first = blockIdx.x % a.groups * channels;
  const GroupStatistics s = Statistics(a.x + base, count);
  for (int i = threadIdx.x; i < count; i += kNormThreads) {
    const int channel = first + i / a.length;
    a.y[base + i] =
        Mish((a.x[base + i] - s.mean) * s.inverse * a.weight[channel] + a.bias[channel]);
  }
}

}  // namespace

void GroupNormMishFused(const GroupNormMishArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.batch * a.groups);
  shape.block = dim3(kNormThreads);
  Launch(GroupNormMishKernel, shape, stream, "group normalisation with Mish", a);
}

}  // namespace mjp::ladder
