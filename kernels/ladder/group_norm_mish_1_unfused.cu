// Rung 1: as a framework runs it, one launch for the statistics, one for the normalisation, one for
// Mish. Every launch writes what the next one reads back: x moves five times, and at a microsecond
// each the launches alone cost more than the arithmetic.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/ladder/group_norm_mish.cuh"
#include "kernels/ladder/group_sum.cuh"

namespace mjp::ladder {
namespace {

// grid (batch x groups)
__global__ void StatisticsKernel(const GroupNormMishArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int count = a.channels / a.groups * a.length;
  const GroupStatistics s = Statistics(a.x + static_cast<size_t>(blockIdx.x) * count, count);
  if (threadIdx.x != 0) return;
  a.mean[blockIdx.x] = s.mean;
  a.inverse[blockIdx.x] = s.inverse;
}

// grid: elements
__global__ void NormaliseKernel(const GroupNormMishArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kNormThreads + threadIdx.x;
  if (i >= a.batch * a.channels * a.length) return;
  const int channel = i / a.length % a.channels;
  const int group = i / (a.channels / a.groups * a.length);
  a.normalised[i] =
      (a.x[i] - a.mean[group]) * a.inverse[group] * a.weight[channel] + a.bias[channel];
}

// grid: elements
__global__ void MishKernel(const GroupNormMishArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kNormThreads + threadIdx.x;
  if (i < a.batch * a.channels * a.length) a.y[i] = Mish(a.normalised[i]);
}

}  // namespace

void GroupNormMishUnfused(const GroupNormMishArgs& a, cudaStream_t stream) {
  LaunchShape statistics, elements;
  statistics.block = elements.block = dim3(kNormThreads);
  statistics.grid = dim3(a.batch * a.groups);
  elements.grid = dim3((a.batch * a.channels * a.length + kNormThreads - 1) / kNormThreads);
  Launch(StatisticsKernel, statistics, stream, "group statistics", a);
  Launch(NormaliseKernel, elements, stream, "group normalisation", a);
  Launch(MishKernel, elements, stream, "Mish", a);
}

}  // namespace mjp::ladder
