#include "kernels/cpu/transformer/softmax.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr float kLeastExponent = -80.0f;  // e^-80 is 0 next to 1, and no denormal number

// e^d for d <= 0. The bound loses NaN and infinity: 0 d brings them back, as NaN.
Packet Exponential(const Packet& d) {
  return Fma(d, Broadcast(0.0f), Exp(Max(d, Broadcast(kLeastExponent))));
}

float Largest(const float* x, int size) {
  Packet most = Broadcast(x[0]);
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) most = Max(most, Load(x + i));
  float largest = simd::predux_max(most);
  for (; i < size; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace

void Softmax(float* x, int size, float scale) {
  const Packet largest = Broadcast(Largest(x, size)), factor = Broadcast(scale);
  const auto element = [&](const Packet& v) {
    return Exponential(simd::pmul(simd::psub(v, largest), factor));
  };
  Packet sums[kParts];
  for (Packet& sum : sums) sum = Broadcast(0.0f);
  int i = 0;
  for (; i + kSumLanes <= size; i += kSumLanes) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      float* const at = x + i + part * kLanes;
      const Packet e = element(Load(at));
      Store(at, e);
      sums[part] = simd::padd(sums[part], e);
    }
  }
  float lanes[kSumLanes] = {};
  for (int rest = i; rest < size; ++rest) lanes[rest - i] = x[rest];
  for (float* at = lanes; at < lanes + kSumLanes; at += kLanes) Store(at, element(Load(at)));
  float total = 0;
  for (int rest = i; rest < size; ++rest) {
    x[rest] = lanes[rest - i];
    total += x[rest];
  }
  for (int part = 0; part < kParts; ++part) Store(lanes + part * kLanes, sums[part]);
  for (const float lane : lanes) total += lane;
  const Packet inverse = Broadcast(1.0f / total);
  for (i = 0; i + kLanes <= size; i += kLanes) Store(x + i, simd::pmul(Load(x + i), inverse));
  for (; i < size; ++i) x[i] *= 1.0f / total;
}

}  // namespace mjp::cpu::MJP_ISA
