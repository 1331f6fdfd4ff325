#ifndef KERNELS_CUDA_PRIMITIVES_TMA_CUH_
#define KERNELS_CUDA_PRIMITIVES_TMA_CUH_

#include <cuda.h>

#include "kernels/cuda/primitives/ptx.cuh"

// Copies by Hopper's tensor memory accelerator, and a ring of shared-memory slots that they fill.

namespace mjp {

// Copies the block of `map` that starts at these coordinates, the innermost first, to shared memory
// asynchronously; `barrier` expects its bytes.
__device__ __forceinline__ void CopyTensor(uint32_t shared, const CUtensorMap& map, int c, int x,
                                           int y, int n, uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4, %5}], [%6];" ::"r"(shared),
      "l"(&map), "r"(c), "r"(x), "r"(y), "r"(n), "r"(barrier)
      : "memory");
#else
  __trap();
#endif
}

// The same to all CTAs of the cluster whose rank is a bit of `ctas`: to this shared address in
// each, whose barrier at this address expects the bytes.
__device__ __forceinline__ void CopyTensorToCtas(uint32_t shared, const CUtensorMap& map, int c,
                                                 int x, int y, int n, uint32_t barrier,
                                                 uint32_t ctas) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared),
      "l"(&map), "r"(c), "r"(x), "r"(y), "r"(n), "r"(barrier), "h"(static_cast<uint16_t>(ctas))
      : "memory");
#else
  __trap();
#endif
}

// Fetches a tensor's description, before the first copy.
__device__ __forceinline__ void PrefetchTensorMap(const CUtensorMap& map) {
#if __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

// An arrival at a barrier of this block.
__device__ __forceinline__ void Arrive(uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
  __trap();
#endif
}

// An arrival at an address that InCta gave, after products have read what that CTA will overwrite.
// Orders no ordinary access of the cluster: a release there costs a fence of the whole GPU.
__device__ __forceinline__ void ArriveInCta(uint32_t barrier_there) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_there) : "memory");
#else
  __trap();
#endif
}

// A place in a ring of slots, each with a barrier that says it is full and one that says it is
// empty, 16 bytes for both. Producer and consumers walk it alike.
struct RingSlot {
  uint32_t barriers;  // of the ring's first slot
  int slots;
  int slot = 0;
  uint32_t phase = 0;

  __device__ __forceinline__ uint32_t Full() const { return barriers + slot * 16; }
  __device__ __forceinline__ uint32_t Empty() const { return barriers + slot * 16 + 8; }
  __device__ __forceinline__ void AwaitFull() const { AwaitBarrier(Full(), phase); }
  __device__ __forceinline__ void AwaitEmpty() const { AwaitBarrier(Empty(), phase ^ 1); }
  __device__ __forceinline__ void Next() {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
};

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_TMA_CUH_
