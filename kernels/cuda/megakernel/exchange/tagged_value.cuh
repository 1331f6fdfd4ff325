#ifndef KERNELS_CUDA_MEGAKERNEL_EXCHANGE_TAGGED_VALUE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EXCHANGE_TAGGED_VALUE_CUH_

#include <cstdint>

#include "kernels/cuda/megakernel/exchange/spin_watchdog.cuh"

// Tagged values: float32 values that CTAs exchange through L2, each of which carries in its lowest
// mantissa bit the epoch (pass & 1) that wrote it. Data and flag travel in one store, as in NCCL's
// LL protocol. Every value is written once per pass; that one bit and one buffer are enough: see I3
// and I7 in README.md.

namespace mjp::megakernel {

__device__ __forceinline__ uint4 LoadTagged4(const float* at) {
  uint4 w;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at));
  return w;
}

__device__ __forceinline__ uint32_t LoadTagged(const float* at) {
  uint32_t w;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(w) : "l"(at));
  return w;
}

__device__ __forceinline__ uint32_t Tag(float v, uint32_t epoch) {
  return (__float_as_uint(v) & ~1u) | epoch;
}
__device__ __forceinline__ float Untag(uint32_t tagged) { return __uint_as_float(tagged & ~1u); }

__device__ __forceinline__ void StoreTagged(float* at, float v, uint32_t epoch) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(Tag(v, epoch)));
}

// Vector `i` of those that stand `stride` values apart.
__device__ __forceinline__ const float* TaggedAt(const float* at, uint32_t stride, int i) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(at) +
                                        static_cast<uint64_t>(stride * 4) * i);
}

// Issues the loads of `count` vectors, `stride` values apart; the others of kCount become zeros.
template <int kCount>
__device__ __forceinline__ void IssueTagged4(uint4 (&w)[kCount], const float* at, uint32_t stride,
                                             int count, uint32_t epoch) {
  if (count == kCount) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) w[i] = LoadTagged4(TaggedAt(at, stride, i));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      w[i] =
          i < count ? LoadTagged4(TaggedAt(at, stride, i)) : make_uint4(epoch, epoch, epoch, epoch);
  }
}

// Clears the tags of values that are of this epoch, and sets those of the others.
__device__ __forceinline__ uint4 FlipEpoch(const uint4& w, uint32_t epoch) {
  return make_uint4(w.x ^ epoch, w.y ^ epoch, w.z ^ epoch, w.w ^ epoch);
}

// Adds to `all` the bits in which a value differs from the epoch, of which the lowest one counts.
// One opaque instruction: the compiler would compare value by value, and where it has no predicates
// for all of them wait for some before it issues the other loads.
__device__ __forceinline__ void AddMismatch(uint32_t& all, uint32_t tagged, uint32_t epoch) {
  asm("lop3.b32 %0, %0, %1, %2, 0xf6;" : "+r"(all) : "r"(tagged), "r"(epoch));
}

// The same of two values.
__device__ __forceinline__ uint32_t Mismatch2(uint32_t one, uint32_t other, uint32_t epoch) {
  uint32_t mismatch;
  asm("lop3.b32 %0, %1, %2, %3, 0x7e;" : "=r"(mismatch) : "r"(one), "r"(other), "r"(epoch));
  return mismatch;
}

// Sum of the vectors whose loads were issued, always in the same order; loads again those that had
// not arrived.
template <int kCount>
__device__ __forceinline__ float4 ReceiveSum4(uint4 (&w)[kCount], const float* at, uint32_t stride,
                                              uint32_t epoch, SpinWatchdog& watchdog) {
  for (int tries = 0;; ++tries) {
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      w[i] = FlipEpoch(w[i], epoch);
      missing |= w[i].x | w[i].y | w[i].z | w[i].w;
    }
    if ((missing & 1) == 0 || watchdog.TimedOut(tries)) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool again = (w[i].x | w[i].y | w[i].z | w[i].w) & 1;
      w[i] = again ? LoadTagged4(TaggedAt(at, stride, i)) : FlipEpoch(w[i], epoch);
    }
  }
  const auto value = [](uint32_t bits) { return __uint_as_float(bits); };
  float4 sum = make_float4(value(w[0].x), value(w[0].y), value(w[0].z), value(w[0].w));
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
    sum.x += value(w[i].x), sum.y += value(w[i].y);
    sum.z += value(w[i].z), sum.w += value(w[i].w);
  }
  return sum;
}

// The same of single values; those beyond `count` are zeros that have arrived.
template <int kMaxCount>
__device__ __forceinline__ float ReceiveSum(const float* at, size_t stride, int count,
                                            uint32_t epoch, SpinWatchdog& watchdog) {
  uint32_t w[kMaxCount];
#pragma unroll
  for (uint32_t& tagged : w) tagged = epoch;
  for (int tries = 0;; ++tries) {
#pragma unroll
    for (int i = 0; i < kMaxCount; ++i)
      if (i < count) w[i] = LoadTagged(at + i * stride);
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < kMaxCount; ++i) AddMismatch(missing, w[i], epoch);
    if ((missing & 1) == 0 || watchdog.TimedOut(tries)) break;
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kMaxCount; ++i) sum += Untag(w[i]);
  return sum;
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EXCHANGE_TAGGED_VALUE_CUH_
