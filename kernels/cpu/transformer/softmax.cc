#include "kernels/cpu/transformer/softmax.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr float kLeastExponent = -80.0f;  // e^-80 is 0 next to 1, and no denormal number

// e^d for d <= 0. The bound loses NaN and infinity: 0 d brings them back, as NaN.
Packet Exponential(const Packet& d) {
  return simd::pmadd(d, Broadcast(0.0f), simd::pexp(simd::pmax(d, Broadcast(kLeastExponent))));
}

float Largest(const float* x, int size) {
  Packet most = Broadcast(x[0]);
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) most = simd::pmax(most, Load(x + i));
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
  Packet sums = Broadcast(0.0f);
  int i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Packet e = element(Load(x + i));
    Store(x + i, e);
    sums = simd::padd(sums, e);
  }
  float lanes[kLanes] = {};
  for (int rest = i; rest < size; ++rest) lanes[rest - i] = x[rest];
  Store(lanes, element(Load(lanes)));
  float total = 0;
  for (int rest = i; rest < size; ++rest) {
    x[rest] = lanes[rest - i];
    total += x[rest];
  }
  Store(lanes, sums);
  for (const float lane : lanes) total += lane;
  const Packet inverse = Broadcast(1.0f / total);
  for (i = 0; i + kLanes <= size; i += kLanes) Store(x + i, simd::pmul(Load(x + i), inverse));
  for (; i < size; ++i) x[i] *= 1.0f / total;
}

}  // namespace mjp::cpu::MJP_ISA
