#ifndef KERNELS_CUDA_MEGAKERNEL_TAGGED_VALUE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_TAGGED_VALUE_CUH_

#include <cstdint>

// Words: float32 numbers handed from block to block through L2, each carrying in its lowest
// mantissa bit the parity of the pass that wrote it. Every word is written once per pass, and no
// block is a whole pass ahead of a reader, so one bit tells the new value from the old one.

namespace mjp {

__device__ __forceinline__ uint64_t GlobalNanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// Bounds a thread's waits. After one of them lasted kStuckNanoseconds, or another block said so,
// waits end at once and the chain runs to its end on worthless numbers.
class WaitWatch {
 public:
  __device__ explicit WaitWatch(int* stuck) : stuck_(stuck) {}

  // Whether to stop waiting, asked after the wait's try number `tries`.
  __device__ __forceinline__ bool GivesUp(int tries) {
    if (given_up_) return true;
    if ((tries & 1023) != 1023) return false;
    if (tries == 1023) begin_ = GlobalNanoseconds();
    if (GlobalNanoseconds() - begin_ > kStuckNanoseconds) *static_cast<volatile int*>(stuck_) = 1;
    given_up_ = *static_cast<volatile int*>(stuck_) != 0;
    return given_up_;
  }

 private:
  static constexpr uint64_t kStuckNanoseconds = 2'000'000'000;
  int* stuck_;
  uint64_t begin_ = 0;
  bool given_up_ = false;
};

__device__ __forceinline__ uint4 LoadWords4(const float* at) {
  uint4 w;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at));
  return w;
}

__device__ __forceinline__ uint32_t LoadWord(const float* at) {
  uint32_t w;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(w) : "l"(at));
  return w;
}

__device__ __forceinline__ uint32_t MakeWord(float v, uint32_t parity) {
  return (__float_as_uint(v) & ~1u) | parity;
}
__device__ __forceinline__ float WordValue(uint32_t word) { return __uint_as_float(word & ~1u); }

__device__ __forceinline__ void StoreWords4(float* at, const float4& v, uint32_t parity) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at),
               "r"(MakeWord(v.x, parity)), "r"(MakeWord(v.y, parity)), "r"(MakeWord(v.z, parity)),
               "r"(MakeWord(v.w, parity)));
}
__device__ __forceinline__ void StoreWord(float* at, float v, uint32_t parity) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(MakeWord(v, parity)));
}

// Bit 0: whether one of the four is not of this parity.
__device__ __forceinline__ uint32_t Missing(const uint4& w, uint32_t parity) {
  return (w.x ^ parity) | (w.y ^ parity) | (w.z ^ parity) | (w.w ^ parity);
}

// Vector `i` of those that stand `stride` words apart.
__device__ __forceinline__ const float* WordsAt(const float* at, uint32_t stride, int i) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(at) +
                                        static_cast<uint64_t>(stride * 4) * i);
}

// Asks for `count` vectors, `stride` words apart; the others of kCount become zeros.
template <int kCount>
__device__ __forceinline__ void AskWords4(uint4 (&w)[kCount], const float* at, uint32_t stride,
                                          int count, uint32_t parity) {
  if (count == kCount) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) w[i] = LoadWords4(WordsAt(at, stride, i));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      w[i] = i < count ? LoadWords4(WordsAt(at, stride, i))
                       : make_uint4(parity, parity, parity, parity);
  }
}

__device__ __forceinline__ uint4 Flipped(const uint4& w, uint32_t parity) {
  return make_uint4(w.x ^ parity, w.y ^ parity, w.z ^ parity, w.w ^ parity);
}

// Adds to `all` the bits in which a word is not of this parity, of which the lowest one counts. One
// instruction that the compiler does not see through: it would compare words by themselves, and
// wait for some before it asks for the others where it has no predicates for all.
__device__ __forceinline__ void AddDifference(uint32_t& all, uint32_t word, uint32_t parity) {
  asm("lop3.b32 %0, %0, %1, %2, 0xf6;" : "+r"(all) : "r"(word), "r"(parity));
}

// The same of two words.
__device__ __forceinline__ uint32_t Differences(uint32_t one, uint32_t other, uint32_t parity) {
  uint32_t differences;
  asm("lop3.b32 %0, %1, %2, %3, 0x7e;" : "=r"(differences) : "r"(one), "r"(other), "r"(parity));
  return differences;
}

// Sum of the vectors that were asked for, always in the same order; asks again for those that had
// not come yet.
template <int kCount>
__device__ __forceinline__ float4 SumWords4(uint4 (&w)[kCount], const float* at, uint32_t stride,
                                            uint32_t parity, WaitWatch& watch) {
  for (int tries = 0;; ++tries) {
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      w[i] = Flipped(w[i], parity);
      missing |= w[i].x | w[i].y | w[i].z | w[i].w;
    }
    if ((missing & 1) == 0 || watch.GivesUp(tries)) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool again = (w[i].x | w[i].y | w[i].z | w[i].w) & 1;
      w[i] = again ? LoadWords4(WordsAt(at, stride, i)) : Flipped(w[i], parity);
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

// The same of single words; those beyond `count` are zeros that have come.
template <int kMaxCount>
__device__ __forceinline__ float SumWords(const float* at, size_t stride, int count,
                                          uint32_t parity, WaitWatch& watch) {
  uint32_t w[kMaxCount];
#pragma unroll
  for (uint32_t& word : w) word = parity;
  for (int tries = 0;; ++tries) {
#pragma unroll
    for (int i = 0; i < kMaxCount; ++i)
      if (i < count) w[i] = LoadWord(at + i * stride);
    uint32_t missing = 0;
#pragma unroll
    for (int i = 0; i < kMaxCount; ++i) AddDifference(missing, w[i], parity);
    if ((missing & 1) == 0 || watch.GivesUp(tries)) break;
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kMaxCount; ++i) sum += WordValue(w[i]);
  return sum;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_TAGGED_VALUE_CUH_
