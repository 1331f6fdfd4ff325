// The checksum of a memory: each thread sums words a grid apart, a warp by shuffles, and one lane
// of it adds to the result. Bytes: the memory once.

#include <cuda_runtime.h>

#include <cstring>

#include "kernels/cuda/primitives/checksum.h"
#include "kernels/cuda/primitives/cuda_raii.h"

namespace mjp {
namespace {

constexpr int kBlocks = 512, kThreads = 256;

// grid: (kBlocks)
__global__ void ChecksumKernel(const uint32_t* memory, size_t words, unsigned long long* sums) {
  unsigned long long sum = 0, places = 0;
  const size_t stride = size_t{1} * gridDim.x * blockDim.x;
  for (size_t i = size_t{1} * blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) {
    sum += memory[i];
    places += memory[i] * static_cast<unsigned long long>(i);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, lanes);
    places += __shfl_down_sync(0xffffffff, places, lanes);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(sums, sum);
  atomicAdd(sums + 1, places);
}

}  // namespace

void AddToChecksum(Checksum& sum, size_t first, const void* host, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(host);
  const size_t whole = bytes / sizeof(uint32_t);
  uint32_t word = 0;
  for (size_t i = 0; i < whole; ++i) {
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    sum.words += word;
    sum.places += word * static_cast<uint64_t>(first + i);
  }
  if (bytes % sizeof(word) == 0) return;
  word = 0;
  std::memcpy(&word, from + whole * sizeof(word), bytes % sizeof(word));
  sum.words += word;
  sum.places += word * static_cast<uint64_t>(first + whole);
}

Checksum DeviceChecksum(const void* device, size_t bytes) {
  unsigned long long host[2] = {};
  const auto sums = MakeDeviceArray<unsigned long long>(2);
  CheckCuda(cudaMemset(sums.get(), 0, sizeof(host)), "checksum");
  ChecksumKernel<<<kBlocks, kThreads>>>(static_cast<const uint32_t*>(device),
                                        bytes / sizeof(uint32_t), sums.get());
  CheckCuda(cudaGetLastError(), "checksum");
  CheckCuda(cudaMemcpy(host, sums.get(), sizeof(host), cudaMemcpyDeviceToHost), "checksum");
  return {host[0], host[1]};
}

}  // namespace mjp
