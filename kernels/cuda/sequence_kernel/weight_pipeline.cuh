#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_PIPELINE_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_PIPELINE_CUH_

#include "kernels/cuda/primitives/ptx.cuh"

// The weights of a warp: it reads the same stream in every pass, in groups of 8 out channels x 64
// of k, through a ring in shared memory whose groups are copied ahead, across layers and passes. A
// lane reads back only what it copied itself, so no warp waits for another one.

namespace mjp::sequence_kernel {

inline constexpr int kGroupBytes = 1024;
inline constexpr int kGroupOut = 8, kGroupK = 64;

class WeightPipeline {
 public:
  static constexpr int kGroups = 10;  // of the ring
  static constexpr int kRingBytes = kGroups * kGroupBytes;

  // `begin`: the warp's `groups` groups; `ring`: its place in shared memory.
  __device__ __forceinline__ WeightPipeline(const uint8_t* begin, int groups, uint32_t ring,
                                            int lane)
      : begin_(begin + lane * 16),
        next_(begin_),
        end_(begin_ + static_cast<size_t>(groups) * kGroupBytes),
        first_(ring + lane * 16),
        slot_(first_) {
    for (int i = 0; i < kGroups; ++i) CopyNext();
  }

  // To be called once before the first Next().
  __device__ __forceinline__ void Start() { Load(); }

  // Gives the group's operands: those of 16 of k are v[2 i] and v[2 i + 1]. Loads the one behind.
  __device__ __forceinline__ void Next(uint32_t (&v)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = loaded_[i];
    CopyNext();  // into the place of what was just taken
    Load();
  }

 private:
  __device__ __forceinline__ void CopyNext() {
    CopyAsync16(slot_, next_, true);
    CopyAsync16(slot_ + kGroupBytes / 2, next_ + kGroupBytes / 2, true);
    CommitCopies();
    next_ += kGroupBytes;
    if (next_ == end_) next_ = begin_;
    slot_ = slot_ == first_ + (kGroups - 1) * kGroupBytes ? first_ : slot_ + kGroupBytes;
  }
  // Of the oldest group; its place is the next that CopyNext fills.
  __device__ __forceinline__ void Load() {
    WaitCopies<kGroups - 1>();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(loaded_[4 * half]), "=r"(loaded_[4 * half + 1]),
                     "=r"(loaded_[4 * half + 2]), "=r"(loaded_[4 * half + 3])
                   : "r"(slot_ + half * (kGroupBytes / 2))
                   : "memory");
  }

  const uint8_t *begin_, *next_, *end_;
  uint32_t first_, slot_;
  uint32_t loaded_[8];
};

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_PIPELINE_CUH_
