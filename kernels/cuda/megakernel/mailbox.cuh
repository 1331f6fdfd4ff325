#ifndef KERNELS_CUDA_MEGAKERNEL_MAILBOX_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MAILBOX_CUH_

#include <type_traits>

#include "kernels/cuda/megakernel/epilogue_math.cuh"
#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

// What blocks of the wide chain hand each other through L2: vectors of 16 bytes (of finished
// numbers 8) that are written and read whole and tell by themselves whether they have come.

namespace mjp {

// This thread's index, read anew: what follows from it is worked out where it is used, and not held
// in registers through the whole pass.
__device__ __forceinline__ int ThisThread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Has `value` worked out here, and not where it is used.
__device__ __forceinline__ void WorkOut(int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void WorkOut(uint32_t& value) { asm volatile("" : "+r"(value)); }

// Does nothing for so many cycles.
__device__ __forceinline__ void WaitCycles(int cycles) {
  const int begin = clock();
  while (static_cast<int>(clock()) - begin < cycles) {
  }
}

// Barriers of a block's warps, of those that multiply, of those that finish, or of all, the last
// two for each wave; 0 is for sweeps, 1 is its item's.
enum WideBarrier {
  kProductsBarrier = 2,
  kPassBarrier,
  kStepBarrier,
  kSentBarrier,
  kHandedOnBarrier = kSentBarrier + kWideMaxWaves
};
template <WideBarrier kBarrier>
inline constexpr int kThreadsAt = kBarrier == kProductsBarrier ? kChainThreads
                                  : kBarrier == kStepBarrier   ? kWideFinishers
                                                               : kWideThreads;
template <WideBarrier kBarrier>
__device__ __forceinline__ void WaitAtBarrier(int wave = 0) {
  asm volatile("bar.sync %0, %1;" ::"r"(kBarrier + wave), "n"(kThreadsAt<kBarrier>) : "memory");
}
template <WideBarrier kBarrier>
__device__ __forceinline__ void ArriveAtBarrier(int wave = 0) {
  asm volatile("bar.arrive %0, %1;" ::"r"(kBarrier + wave), "n"(kThreadsAt<kBarrier>) : "memory");
}

__device__ __forceinline__ uint4 LoadVector(const void* at) {
  uint4 v = make_uint4(0, 0, 0, 0);
#ifdef MJP_HAVE_WGMMA
  unsigned __int128 all;
  asm volatile("ld.relaxed.gpu.global.b128 %0, [%1];" : "=q"(all) : "l"(at));
  v = reinterpret_cast<const uint4&>(all);
#endif
  return v;
}
__device__ __forceinline__ void StoreVector(void* at, const uint4& v) {
#ifdef MJP_HAVE_WGMMA
  asm volatile("st.relaxed.gpu.global.b128 [%0], %1;" ::"l"(at),
               "q"(reinterpret_cast<const unsigned __int128&>(v))
               : "memory");
#endif
}

__device__ __forceinline__ void StoreEight(void* at, const uint2& v) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(at),
               "l"(reinterpret_cast<const uint64_t&>(v))
               : "memory");
}

// Finished numbers, of 16 bits: the first two of four are never both +0 once they have come, since
// the first zero is handed on as -0 then. Every pass writes the buffer that the pass before
// cleared.
__device__ __forceinline__ void StoreFinished(void* at, uint2 numbers) {
  if (numbers.x == 0) numbers.x = 0x8000;
  StoreEight(at, numbers);
}
__device__ __forceinline__ void ClearFinished(void* at) { StoreEight(at, make_uint2(0, 0)); }
__device__ __forceinline__ bool IsFinished(const uint4& eight) {
  return eight.x != 0 && eight.z != 0;
}

// A thread's four sums of a share, whose first number carries in its lowest bit the parity of the
// use of their box: as float32 or as fp16.
struct WideSums32 {
  using Vector = uint4;
  __device__ __forceinline__ static Vector Load(const void* at) { return LoadVector(at); }
  __device__ __forceinline__ static void StoreSum(void* at, const uint4& a, const uint4& b,
                                                  uint32_t parity) {
    const auto sum = [](uint32_t x, uint32_t y) { return __uint_as_float(x) + __uint_as_float(y); };
    StoreVector(at, make_uint4(MakeWord(sum(a.x, b.x), parity), __float_as_uint(sum(a.y, b.y)),
                               __float_as_uint(sum(a.z, b.z)), __float_as_uint(sum(a.w, b.w))));
  }
  __device__ __forceinline__ static float4 Value(const Vector& w) {
    return make_float4(WordValue(w.x), __uint_as_float(w.y), __uint_as_float(w.z),
                       __uint_as_float(w.w));
  }
};
struct WideSums16 {
  using Vector = uint2;
  __device__ __forceinline__ static Vector Load(const void* at) {
    uint64_t all;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(all) : "l"(at));
    return reinterpret_cast<const uint2&>(all);
  }
  // The sums of two vectors of fp16.
  __device__ __forceinline__ static void StoreSum(void* at, const uint2& a, const uint2& b,
                                                  uint32_t parity) {
    const auto sum = [](const uint32_t& x, const uint32_t& y) {
      const __half2 s =
          __hadd2(reinterpret_cast<const __half2&>(x), reinterpret_cast<const __half2&>(y));
      return reinterpret_cast<const uint32_t&>(s);
    };
    StoreEight(at, make_uint2((sum(a.x, b.x) & ~1u) | parity, sum(a.y, b.y)));
  }
  __device__ __forceinline__ static float4 Value(const Vector& w) {
    const uint32_t first = w.x & ~1u;
    const float2 low = __half22float2(reinterpret_cast<const __half2&>(first));
    const float2 high = __half22float2(reinterpret_cast<const __half2&>(w.y));
    return make_float4(low.x, low.y, high.x, high.y);
  }
};
// Whether shares' sums travel as fp16, which rounds a layer's output about once more; bf16 is for
// numbers beyond fp16's range. T: as numbers are stored.
template <typename T>
inline constexpr bool kSumsAre16 = std::is_same_v<T, __half>;
template <typename T>
using WideSums = std::conditional_t<kSumsAre16<T>, WideSums16, WideSums32>;

// A thread's four sums of `kShares` shares, `stride` bytes apart; at most kAtOnce are under way.
template <typename Sums, int kShares>
class WideShares {
 public:
  __device__ __forceinline__ void Ask(const uint8_t* at, int stride) {
    at_ = at, stride_ = stride;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) shares_[i] = Sums::Load(at + i * stride);
  }
  // Always added in the same order.
  __device__ __forceinline__ float4 Take(uint32_t parity, WaitWatch& watch) {
    float4 sum = TakeAsked(parity, watch);
#pragma unroll
    for (int i = kAtOnce; i < kShares; i += kAtOnce) {
      Ask(at_ + kAtOnce * stride_, stride_);
      Add4(sum, TakeAsked(parity, watch));
    }
    return sum;
  }

 private:
  static constexpr int kMost = sizeof(typename Sums::Vector) == 8 ? 8 : 4;  // for registers
  static constexpr int kAtOnce = kShares < kMost ? kShares : kMost;

  __device__ __forceinline__ float4 TakeAsked(uint32_t parity, WaitWatch& watch) {
    for (int tries = 0;; ++tries) {
      uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; i += 2)
        missing |= Differences(shares_[i].x, shares_[(i + 1) % kAtOnce].x, parity);
      if ((missing & 1) == 0 || watch.GivesUp(tries)) break;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if ((shares_[i].x ^ parity) & 1) shares_[i] = Sums::Load(at_ + i * stride_);
    }
    float4 sum = Sums::Value(shares_[0]);
#pragma unroll
    for (int i = 1; i < kAtOnce; ++i) Add4(sum, Sums::Value(shares_[i]));
    return sum;
  }

  const uint8_t* at_;
  int stride_;
  typename Sums::Vector shares_[kAtOnce];
};

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_MAILBOX_CUH_
