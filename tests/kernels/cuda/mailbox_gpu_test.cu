// The megakernel's exchange between CTAs, between two of them, over a million epochs: values arrive
// as they were stored, whatever their bits, and a spin that waits for nothing ends (I6).

#include <gtest/gtest.h>

#include <chrono>
#include <type_traits>

#include "kernels/cuda/megakernel/exchange/mailbox.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

namespace mk = mjp::megakernel;
using mjp_test::DeviceBuffer;

constexpr int kThreads = 64, kEpochs = 1'000'000;

// A sender that is late, or never comes; whether another CTA's spin has timed out.
struct Delay {
  int epoch = -1;
  unsigned milliseconds = 0;
  bool for_ever = false, another_timed_out = false;
};

// What went wrong: how often, and the first time.
struct Outcome {
  unsigned wrong;
  int timed_out;
  unsigned epoch, thread, expected, actual;
};

__device__ void Check(Outcome* out, bool right, unsigned epoch, unsigned expected,
                      unsigned actual) {
  if (right || atomicAdd(&out->wrong, 1u) > 0) return;
  out->epoch = epoch, out->thread = threadIdx.x, out->expected = expected, out->actual = actual;
}

__device__ void Sleep(unsigned milliseconds) {
  const uint64_t begin = mjp::GlobalNanoseconds();
  while (mjp::GlobalNanoseconds() - begin < milliseconds * uint64_t{1'000'000}) __nanosleep(1000);
}

// Bits that are easily lost: -0, NaNs with payloads, denormals, infinities, and others.
__device__ uint32_t Bits32(uint32_t epoch, uint32_t i) {
  constexpr uint32_t kSpecial[] = {0x80000000, 0,          0x7fffffff, 0xffc12344, 0x7fc00002,
                                   0x00000001, 0x00000002, 0x807fffff, 0x7f800000, 0xff800000,
                                   0x00800000, 0x3f800001, 0x7f7fffff};
  constexpr uint32_t kCount = sizeof(kSpecial) / sizeof(kSpecial[0]);
  uint32_t hash = (epoch * 2654435761u) ^ (i * 0x9e3779b9u);
  hash ^= hash >> 15, hash *= 0x2c1b3c6du, hash ^= hash >> 12;
  return hash % 2 ? kSpecial[hash / 2 % kCount] : hash;
}
__device__ uint32_t Bits16(uint32_t epoch, uint32_t i) {
  constexpr uint16_t kSpecial[] = {0x8000, 0,      0x7fff, 0xfe12, 0x7e02, 0x0001, 0x0002,
                                   0x83ff, 0x7c00, 0xfc00, 0x0400, 0x3c01, 0x7bff};
  constexpr uint32_t kCount = sizeof(kSpecial) / sizeof(kSpecial[0]);
  const uint32_t bits = Bits32(epoch, ~i);
  return bits % 2 ? kSpecial[bits / 2 % kCount] : bits >> 8 & 0xffff;
}
__device__ bool SameFloat(float a, float b) {
  return (isnan(a) && isnan(b)) || __float_as_uint(a) == __float_as_uint(b);
}

// The buffer of a use in turn, and its epoch: as a CTA finds them with one use in a pass.
__device__ int BufferOf(uint32_t use) { return static_cast<int>(use & 1); }
__device__ uint32_t EpochOf(uint32_t use) { return (use >> 1 & 1) ^ 1; }

// Answers: tagged values, single ones.
__device__ float* AnswerAt(float* answers, uint32_t use, int thread) {
  return answers + BufferOf(use) * kThreads + thread;
}
__device__ void Answer(float* answers, uint32_t use) {
  mk::StoreTagged(AnswerAt(answers, use, threadIdx.x), 2.0f * (use % 4096), EpochOf(use));
}
__device__ void AwaitAnswer(float* answers, uint32_t use, int thread, mk::SpinWatchdog& watchdog,
                            Outcome* out) {
  const float answer =
      mk::ReceiveSum<1>(AnswerAt(answers, use, thread), 0, 1, EpochOf(use), watchdog);
  Check(out, answer == 2.0f * (use % 4096), use, __float_as_uint(2.0f * (use % 4096)),
        __float_as_uint(answer));
}

// Value `i` of a thread's four of a slice. Of several slices they are integers, whose sum is exact.
template <typename Sums, int kSlices>
__device__ typename Sums::Vector Message(uint32_t epoch, int slice) {
  constexpr bool kF16 = sizeof(typename Sums::Vector) == 8;
  uint32_t v[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t at = (threadIdx.x * kSlices + slice) * 4 + i;
    const float integer = static_cast<float>(Bits32(epoch, at) % 1000) - 500.0f;
    if (kSlices > 1) {
      v[i] = kF16 ? __half_as_ushort(__float2half(integer)) : __float_as_uint(integer);
    } else {
      v[i] = kF16 ? Bits16(epoch, at) : Bits32(epoch, at);
    }
  }
  if constexpr (kF16) {
    return make_uint2(v[0] | v[1] << 16, v[2] | v[3] << 16);
  } else {
    return make_uint4(v[0], v[1], v[2], v[3]);
  }
}
// -0, which changes nothing that it is added to.
template <typename Vector>
__device__ Vector Nothing() {
  if constexpr (sizeof(Vector) == 8) {
    return make_uint2(0x80008000u, 0x80008000u);
  } else {
    return make_uint4(0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u);
  }
}

// What a reader is to make of all slices: the first of four values has lost its lowest bit.
template <typename Sums, int kSlices>
__device__ float4 Expected(uint32_t epoch) {
  float sum[4];
  for (int slice = 0; slice < kSlices; ++slice) {
    const auto v = Message<Sums, kSlices>(epoch, slice);
    for (int i = 0; i < 4; ++i) {
      float value;
      if constexpr (sizeof(v) == 8) {
        const uint32_t pair = i < 2 ? v.x : v.y;
        const auto bits = static_cast<unsigned short>(i % 2 ? pair >> 16 : pair & 0xffff);
        value = __half2float(__ushort_as_half(bits));
        if (i == 0 && !isnan(value))
          value = __half2float(__ushort_as_half(static_cast<unsigned short>(bits & ~1u)));
      } else {
        const uint32_t bits = i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
        value = __uint_as_float(bits);
        if (i == 0 && !isnan(value)) value = __uint_as_float(bits & ~1u);
      }
      sum[i] = slice == 0 ? value : sum[i] + value;
    }
  }
  return make_float4(sum[0], sum[1], sum[2], sum[3]);
}

// grid: (2): CTA 0 sends partial sums, CTA 1 adds them up and answers. Who sends use n has the
// answer to use n - 2, as in the megakernel.
template <typename Sums, int kSlices>
__global__ void __launch_bounds__(kThreads)
    ExchangeSums(uint8_t* mailbox, float* answers, int epochs, Delay delay, Outcome* out) {
  constexpr int kVector = sizeof(typename Sums::Vector), kSlice = kThreads * kVector;
  mk::SpinWatchdog watchdog(&out->timed_out);
  for (uint32_t use = 0; use < static_cast<uint32_t>(epochs); ++use) {
    uint8_t* at = mailbox + BufferOf(use) * kSlices * kSlice + threadIdx.x * kVector;
    if (blockIdx.x == 0) {
      if (use >= 2) AwaitAnswer(answers, use - 2, threadIdx.x, watchdog, out);
      if (static_cast<int>(use) == delay.epoch) {
        if (delay.for_ever) return;
        Sleep(delay.milliseconds);
      }
      for (int slice = 0; slice < kSlices; ++slice)
        Sums::StoreSum(at + slice * kSlice, Message<Sums, kSlices>(use, slice),
                       Nothing<typename Sums::Vector>(), EpochOf(use));
    } else {
      mk::MailboxReader<Sums, kSlices> reader;
      reader.IssueLoads(at, kSlice);
      const float4 sum = reader.Receive(EpochOf(use), watchdog);
      const float4 expected = Expected<Sums, kSlices>(use);
      Check(out,
            SameFloat(sum.x, expected.x) && SameFloat(sum.y, expected.y) &&
                SameFloat(sum.z, expected.z) && SameFloat(sum.w, expected.w),
            use, __float_as_uint(expected.x), __float_as_uint(sum.x));
      Answer(answers, use);
    }
  }
}

// grid: (2): CTA 0 publishes activations of 16 bits, two threads a vector, into the buffer that it
// cleared the epoch before; CTA 1 polls the vectors and answers.
__global__ void __launch_bounds__(2 * kThreads)
    ExchangeActivations(uint8_t* buffers, float* answers, int epochs, Delay delay, Outcome* out) {
  constexpr int kBuffer = kThreads * 16;
  mk::SpinWatchdog watchdog(&out->timed_out);
  const int vector = blockIdx.x == 0 ? threadIdx.x / 2 : threadIdx.x % kThreads;
  const auto make = [](uint32_t epoch, int thread) {
    const auto pair = [&](uint32_t i) {
      return Bits16(epoch, thread * 4 + i) | Bits16(epoch, thread * 4 + i + 1) << 16;
    };
    // every fourth begins with zeros
    return make_uint2((epoch + thread) % 4 == 0 ? 0 : pair(0), pair(2));
  };
  for (uint32_t use = 0; use < static_cast<uint32_t>(epochs); ++use) {
    if (blockIdx.x == 0) {
      if (use >= 1) AwaitAnswer(answers, use - 1, vector, watchdog, out);
      mk::ClearActivation(buffers + BufferOf(use + 1) * kBuffer + threadIdx.x * 8);
      __threadfence();
      __syncthreads();
      if (static_cast<int>(use) == delay.epoch) Sleep(delay.milliseconds);
      mk::StoreActivation(buffers + BufferOf(use) * kBuffer + threadIdx.x * 8,
                          make(use, threadIdx.x));
    } else if (threadIdx.x < kThreads) {
      const uint8_t* at = buffers + BufferOf(use) * kBuffer + vector * 16;
      uint4 v = mk::Load16(at);
      for (int tries = 0; !mk::HasArrived(v) && !watchdog.TimedOut(tries); ++tries)
        v = mk::Load16(at);
      for (int half = 0; half < 2; ++half) {
        uint2 expected = make(use, 2 * vector + half);
        if (expected.x == 0) expected.x = 0x8000;  // (-0, +0)
        const uint2 actual = half ? make_uint2(v.z, v.w) : make_uint2(v.x, v.y);
        Check(out, actual.x == expected.x && actual.y == expected.y, use, expected.x, actual.x);
      }
      Answer(answers, use);
    }
  }
}

// Runs two CTAs that exchange `bytes` of messages, all zero at first.
template <typename Kernel>
Outcome Run(const Kernel& kernel, int threads, size_t bytes, int epochs, Delay delay) {
  DeviceBuffer messages(bytes), answers(2 * kThreads * sizeof(float)), outcome(sizeof(Outcome));
  mjp::CheckCuda(cudaMemset(messages.data(), 0, bytes), "cudaMemset");
  mjp::CheckCuda(cudaMemset(answers.data(), 0, 2 * kThreads * sizeof(float)), "cudaMemset");
  Outcome begin = {};
  begin.timed_out = delay.another_timed_out;
  mjp::CheckCuda(cudaMemcpy(outcome.data(), &begin, sizeof begin, cudaMemcpyHostToDevice),
                 "cudaMemcpy");
  auto* to = messages.as<uint8_t>();
  auto* back = answers.as<float>();
  auto* out = outcome.as<Outcome>();
  void* args[] = {&to, &back, &epochs, &delay, &out};
  mjp::CheckCuda(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(2),
                                             dim3(threads), args, 0, nullptr),
                 "two CTAs");
  mjp::CheckCuda(cudaDeviceSynchronize(), "two CTAs");
  Outcome o;
  const std::vector<uint8_t> host = outcome.Download();
  std::memcpy(&o, host.data(), sizeof o);
  static_cast<void>(messages.Download());  // the guard bands
  return o;
}
template <typename Sums, int kSlices>
Outcome RunSums(int epochs, Delay delay = {}) {
  return Run(ExchangeSums<Sums, kSlices>, kThreads,
             size_t{2} * kSlices * kThreads * sizeof(typename Sums::Vector), epochs, delay);
}
Outcome RunActivations(int epochs, Delay delay = {}) {
  return Run(ExchangeActivations, 2 * kThreads, 2 * kThreads * 16, epochs, delay);
}

void ExpectRight(const Outcome& o) {
  EXPECT_EQ(o.timed_out, 0);
  EXPECT_EQ(o.wrong, 0u) << "first in epoch " << o.epoch << ", thread " << o.thread << std::hex
                         << ": expected " << o.expected << ", got " << o.actual;
}

class Mailbox : public testing::Test {
 protected:
  void SetUp() override { DEVICE_OR_SKIP(); }
};

TEST_F(Mailbox, PartialSumsArriveOverAMillionEpochs) {
  ExpectRight(RunSums<mk::PartialSumsF32, 1>(kEpochs));
  ExpectRight(RunSums<mk::PartialSumsF16, 1>(kEpochs));
}

TEST_F(Mailbox, SlicesAreAddedUp) {
  constexpr int kFew = kEpochs / 20;
  ExpectRight(RunSums<mk::PartialSumsF32, 2>(kFew));
  ExpectRight(RunSums<mk::PartialSumsF32, 16>(kFew));
  ExpectRight(RunSums<mk::PartialSumsF16, 4>(kFew));
  ExpectRight(RunSums<mk::PartialSumsF16, 16>(kFew));
}

TEST_F(Mailbox, ActivationsArriveOverAMillionEpochs) { ExpectRight(RunActivations(kEpochs)); }

TEST_F(Mailbox, ASenderMayBeLate) {
  const Delay delay = {100, 500, false};
  ExpectRight(RunSums<mk::PartialSumsF16, 8>(200, delay));
  ExpectRight(RunActivations(200, delay));
}

TEST_F(Mailbox, ASpinEndsWhereNobodySends) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome o = RunSums<mk::PartialSumsF32, 1>(1000, {100, 0, true});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(o.timed_out, 1) << "the host would take worthless values";
  EXPECT_GT(o.wrong, 0u);
  EXPECT_GE(o.epoch, 100u) << "what came before was right";
  EXPECT_GT(seconds.count(), 1.5);
  EXPECT_LT(seconds.count(), 20.0);
}

TEST_F(Mailbox, ASpinEndsWhereAnotherCtaTimedOut) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome o = RunSums<mk::PartialSumsF32, 1>(1000, {100, 0, true, true});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(o.wrong, 0u) << "values that never came were waited for";
  EXPECT_LT(seconds.count(), 1.5) << "the spin waited for a timeout of its own";
}

}  // namespace
