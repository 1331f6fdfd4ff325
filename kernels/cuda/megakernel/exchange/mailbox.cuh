#ifndef KERNELS_CUDA_MEGAKERNEL_EXCHANGE_MAILBOX_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EXCHANGE_MAILBOX_CUH_

#include <type_traits>

#include "kernels/cuda/megakernel/cta_state.cuh"
#include "kernels/cuda/megakernel/exchange/named_barrier.cuh"
#include "kernels/cuda/megakernel/exchange/whole_access.cuh"
#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/primitives/registers.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

// The exchange between CTAs, through L2: vectors of 16 bytes (of activations 8) that are stored and
// loaded whole and carry their own flag, as in NCCL's LL protocol. Activations: empty is zero.
// Partial sums: the lowest bit of the first of four values is the epoch of the mailbox' use.

namespace mjp::megakernel {

// Four activations of 16 bits. The first pair is the flag: 0 is empty, and a pair (+0, +0) is
// stored as (-0, +0). Every pass writes the buffer that the pass before cleared.
__device__ __forceinline__ void StoreActivation(void* at, uint2 values) {
  if (values.x == 0) values.x = 0x8000;
  Store8(at, values);
}
__device__ __forceinline__ void ClearActivation(void* at) { Store8(at, make_uint2(0, 0)); }
__device__ __forceinline__ bool HasArrived(const uint4& eight) {
  return eight.x != 0 && eight.z != 0;
}

// A thread's four partial sums of a K slice, the first of which is tagged: as float32 or as fp16.
struct PartialSumsF32 {
  using Vector = uint4;
  __device__ __forceinline__ static Vector Load(const void* at) { return Load16(at); }
  __device__ __forceinline__ static void StoreSum(void* at, const uint4& a, const uint4& b,
                                                  uint32_t epoch) {
    const auto sum = [](uint32_t x, uint32_t y) { return __uint_as_float(x) + __uint_as_float(y); };
    Store16(at, make_uint4(Tag(sum(a.x, b.x), epoch), __float_as_uint(sum(a.y, b.y)),
                           __float_as_uint(sum(a.z, b.z)), __float_as_uint(sum(a.w, b.w))));
  }
  __device__ __forceinline__ static float4 Value(const Vector& w) {
    return make_float4(Untag(w.x), __uint_as_float(w.y), __uint_as_float(w.z),
                       __uint_as_float(w.w));
  }
};
struct PartialSumsF16 {
  using Vector = uint2;
  __device__ __forceinline__ static Vector Load(const void* at) { return Load8(at); }
  // Adds two vectors of fp16.
  __device__ __forceinline__ static void StoreSum(void* at, const uint2& a, const uint2& b,
                                                  uint32_t epoch) {
    const auto sum = [](const uint32_t& x, const uint32_t& y) {
      const __half2 s =
          __hadd2(reinterpret_cast<const __half2&>(x), reinterpret_cast<const __half2&>(y));
      return reinterpret_cast<const uint32_t&>(s);
    };
    Store8(at, make_uint2((sum(a.x, b.x) & ~1u) | epoch, sum(a.y, b.y)));
  }
  __device__ __forceinline__ static float4 Value(const Vector& w) {
    const uint32_t first = w.x & ~1u;
    const float2 low = __half22float2(reinterpret_cast<const __half2&>(first));
    const float2 high = __half22float2(reinterpret_cast<const __half2&>(w.y));
    return make_float4(low.x, low.y, high.x, high.y);
  }
};
// Whether partial sums travel as fp16, which rounds a layer's output about once more; bf16 is for
// values beyond fp16's range. T: storage type of activations.
template <typename T>
inline constexpr bool kPartialSumsAreF16 = std::is_same_v<T, __half>;
template <typename T>
using PartialSums = std::conditional_t<kPartialSumsAreF16<T>, PartialSumsF16, PartialSumsF32>;

// A thread's four partial sums of `kSlices` K slices, `stride` bytes apart; at most kInFlight loads
// are under way.
template <typename Sums, int kSlices>
class MailboxReader {
 public:
  __device__ __forceinline__ void IssueLoads(const uint8_t* at, int stride) {
    at_ = at, stride_ = stride;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) slices_[i] = Sums::Load(at + i * stride);
  }
  // Always adds in the same order.
  __device__ __forceinline__ float4 Receive(uint32_t epoch, SpinWatchdog& watchdog) {
    float4 sum = ReceiveIssued(epoch, watchdog);
#pragma unroll
    for (int i = kInFlight; i < kSlices; i += kInFlight) {
      IssueLoads(at_ + kInFlight * stride_, stride_);
      Add4(sum, ReceiveIssued(epoch, watchdog));
    }
    return sum;
  }

 private:
  static constexpr int kMost = sizeof(typename Sums::Vector) == 8 ? 8 : 4;  // for registers
  static constexpr int kInFlight = kSlices < kMost ? kSlices : kMost;

  __device__ __forceinline__ float4 ReceiveIssued(uint32_t epoch, SpinWatchdog& watchdog) {
    for (int tries = 0;; ++tries) {
      uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kInFlight; i += 2)
        missing |= Mismatch2(slices_[i].x, slices_[(i + 1) % kInFlight].x, epoch);
      if ((missing & 1) == 0 || watchdog.TimedOut(tries)) break;
#pragma unroll
      for (int i = 0; i < kInFlight; ++i)
        if ((slices_[i].x ^ epoch) & 1) slices_[i] = Sums::Load(at_ + i * stride_);
    }
    float4 sum = Sums::Value(slices_[0]);
#pragma unroll
    for (int i = 1; i < kInFlight; ++i) Add4(sum, Sums::Value(slices_[i]));
    return sum;
  }

  const uint8_t* at_;
  int stride_;
  typename Sums::Vector slices_[kInFlight];
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EXCHANGE_MAILBOX_CUH_
