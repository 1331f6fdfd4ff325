#ifndef KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_

#include <cstdint>

#include "kernels/cuda/primitives/ptx.cuh"

// Copies of weights that must not push the exchange buffers out of L2.

namespace mjp::megakernel {

// L2 policy of what is read once in a pass: it is evicted first. Created at each use: a loop would
// hold it in two registers otherwise.
__device__ __forceinline__ uint64_t EvictFirstPolicy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
// Copies like CopyAsync16, with such a policy.
__device__ __forceinline__ void CopyAsync16Once(uint32_t shared, const void* global, bool valid,
                                                uint64_t policy) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(shared),
               "l"(global), "r"(bytes), "l"(policy));
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EVICT_FIRST_CUH_
