#ifndef KERNELS_CUDA_PRIMITIVES_TENSOR_CLOCK_CUH_
#define KERNELS_CUDA_PRIMITIVES_TENSOR_CLOCK_CUH_

#include <cstdint>

#include "kernels/cuda/primitives/ptx.cuh"

// What keeps multiprocessors at the clock that products allow. On an H200 those of a GPC run at
// 1.98 GHz without mma, and at 1.80 with it. Where products pause for 800 to 3,200 cycles and begin
// again, as between layers, all of the GPC runs at 1.58 to 1.76 GHz. A product of one warp in every
// 500 cycles keeps 1.80 (docs/experiments/2026-11-row-kernel.md, 8).

namespace mjp {

// Whether that is known of GPUs that this code is for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr bool kPausesCostClock = true;
#else
inline constexpr bool kPausesCostClock = false;
#endif

// Dummy mma instructions of a warp, whose results nobody needs; none where kPausesCostClock is
// false.
class TensorClock {
 public:
  // `count` products, each some 35 cycles after the one before; nobody waits for the last one. All
  // lanes of the warp are together.
  __device__ __forceinline__ void Keep(int count = 1) {
    constexpr uint32_t kOnes = 0x3c003c00;  // two
#pragma unroll 4
    for (int i = 0; i < (kPausesCostClock ? count : 0); ++i)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%4,%4}, {%0,%1,%2,%3};"
          : "+f"(sums_[0]), "+f"(sums_[1]), "+f"(sums_[2]), "+f"(sums_[3])
          : "r"(kOnes));
  }
  // Uses the sums: ptxas leaves out products that nothing depends on.
  __device__ __forceinline__ void End() const {
    if (sums_[0] < 0.0f) Trap();
  }

 private:
  float sums_[4] = {};
};

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_TENSOR_CLOCK_CUH_
