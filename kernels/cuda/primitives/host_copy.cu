// Pinned host memory to the device: a thread has several 16-byte loads over PCIe under way, since
// one of them takes more than 1 us. Bound by PCIe.

#include <algorithm>

#include "kernels/cuda/primitives/host_copy.cuh"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 256, kEach = 4;  // loads of a thread under way

__global__ void __launch_bounds__(kThreads)
    HostCopyKernel(uint4* device, const uint4* host, size_t vectors, size_t bytes) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const size_t stride = size_t{gridDim.x} * kThreads;
  const size_t thread = size_t{blockIdx.x} * kThreads + threadIdx.x;
  for (size_t first = thread; first < vectors; first += kEach * stride) {
    uint4 v[kEach] = {};
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (first + i * stride < vectors) v[i] = host[first + i * stride];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (first + i * stride < vectors) device[first + i * stride] = v[i];
  }
  const size_t tail = vectors * sizeof(uint4) + thread;
  if (tail < bytes)
    reinterpret_cast<uint8_t*>(device)[tail] = reinterpret_cast<const uint8_t*>(host)[tail];
}

}  // namespace

void LaunchHostCopy(void* device, const void* host, size_t bytes, cudaStream_t stream) {
  constexpr size_t kMostBlocks = 264;
  const size_t vectors = bytes / sizeof(uint4);
  const size_t blocks = (vectors + kThreads * kEach - 1) / (kThreads * kEach);
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(std::clamp<size_t>(blocks, 1, kMostBlocks)));
  shape.block = dim3(kThreads);
  Launch(HostCopyKernel, shape, stream, "copy of the pictures", static_cast<uint4*>(device),
         static_cast<const uint4*>(host), vectors, bytes);
}

}  // namespace mjp
