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

// An arrival at a barrier of this block.
__device__ __forceinline__ void Arrive(uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
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
