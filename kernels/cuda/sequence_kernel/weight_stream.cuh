#ifndef KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_STREAM_CUH_
#define KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_STREAM_CUH_

#include "kernels/cuda/primitives/ptx.cuh"

// The weights of a warp: it reads the same stream in every pass, in groups of 8 out channels x 64
// of k, from L2 into a ring of registers, ahead of the products, across layers and passes. Shared
// memory, which feeds the other side of the products, has nothing to do with them. Loads come in
// chunks of four groups, since a warp can wait for few different ones.

namespace mjp::sequence_kernel {

inline constexpr int kGroupBytes = 1024;
inline constexpr int kGroupOut = 8, kGroupK = 64;

class WeightStream {
 public:
  static constexpr int kChunk = 4, kGroups = 3 * kChunk;  // of the ring

  // `begin`: the warp's `groups` groups, a multiple of kGroups.
  __device__ __forceinline__ WeightStream(const uint8_t* begin, int groups, int lane)
      : begin_(begin + lane * 16),
        next_(begin_),
        end_(begin_ + static_cast<size_t>(groups) * kGroupBytes) {
#pragma unroll
    for (int chunk = 0; chunk < kGroups / kChunk; ++chunk) Refill(chunk);
  }

  // Word `i` of group `at`, a constant: operands of 16 of k are words 2 k and 2 k + 1.
  __device__ __forceinline__ uint32_t Word(int at, int i) const { return ring_[at][i]; }

  // After the products of group `at`, in turn from 0 on.
  __device__ __forceinline__ void Done(int at) {
    if (at % kChunk == kChunk - 1) Refill(at / kChunk);
  }

 private:
  __device__ __forceinline__ void Refill(int chunk) {
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t(&v)[8] = ring_[chunk * kChunk + i];
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[4 * half]), "=r"(v[4 * half + 1]), "=r"(v[4 * half + 2]),
                       "=r"(v[4 * half + 3])
                     : "l"(next_ + i * kGroupBytes + half * (kGroupBytes / 2)));
      }
    next_ += kChunk * kGroupBytes;
    if (next_ == end_) next_ = begin_;
  }

  const uint8_t *begin_, *next_, *end_;
  uint32_t ring_[kGroups][8];
};

}  // namespace mjp::sequence_kernel

#endif  // KERNELS_CUDA_SEQUENCE_KERNEL_WEIGHT_STREAM_CUH_
