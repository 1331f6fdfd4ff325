#include "kernels/cpu/transformer/activate.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr float kMostExponent = 80.0f;  // e^80 is finite in float32

// x sigmoid(v) = x / (1 + e^-v), where x is NaN if v is
Packet TimesSigmoid(const Packet& x, const Packet& v) {
  const Packet e = Exp(Min(simd::pnegate(v), Broadcast(kMostExponent)));
  return simd::pdiv(x, simd::padd(Broadcast(1.0f), e));
}

// max(x, 0) - |x| erfc(|x| / sqrt 2) / 2, which is x (1 + erf(x / sqrt 2)) / 2 for both signs, with
//   erfc(a) = e^(-a^2) t P(t),  t = 1 / (1 + 0.3 a);
// P is the polynomial of degree 8 that meets erfc(a) e^(a^2) / t in the Chebyshev nodes of a in
// [0, 6.5]: within 2e-8 of it, relative.
Packet GeluErf(const Packet& x) {
  constexpr float kTerms[] = {0.169324413f,  0.168835565f,   0.159427643f,
                              0.178334415f,  -0.0207286123f, 0.454037815f,
                              -0.439485848f, 0.453829259f,   -0.123574637f};
  const Packet size = simd::pabs(x), a = simd::pmul(size, Broadcast(0.707106781f));
  const Packet one = Broadcast(1.0f);
  const Packet t = simd::pdiv(one, Fma(a, Broadcast(0.3f), one));
  Packet p = Broadcast(kTerms[8]);
  for (int i = 7; i >= 0; --i) p = Fma(p, t, Broadcast(kTerms[i]));
  const Packet square = Min(simd::pmul(a, a), Broadcast(kMostExponent));
  const Packet erfc = simd::pmul(simd::pmul(t, p), Exp(simd::pnegate(square)));
  // the order of the operands lets NaN pass
  return simd::psub(Max(x, Broadcast(0.0f)), simd::pmul(simd::pmul(size, Broadcast(0.5f)), erfc));
}

template <TokenActivation kActivation>
Packet Element(const Packet& x) {
  if constexpr (kActivation == TokenActivation::kRelu) return Max(x, Broadcast(0.0f));
  if constexpr (kActivation == TokenActivation::kGeluErf) return GeluErf(x);
  if constexpr (kActivation == TokenActivation::kGeluTanh) {
    // (1 + tanh u) / 2 = sigmoid(2 u)
    constexpr float kLinear = 1.595769122f, kCubic = kLinear * 0.044715f;
    const Packet square = simd::pmul(x, x);
    return TimesSigmoid(x, simd::pmul(x, Fma(square, Broadcast(kCubic), Broadcast(kLinear))));
  }
  if constexpr (kActivation == TokenActivation::kQuickGelu) {
    return TimesSigmoid(x, simd::pmul(x, Broadcast(1.702f)));
  }
  if constexpr (kActivation == TokenActivation::kSilu) return TimesSigmoid(x, x);
  return x;
}

template <TokenActivation kActivation>
void Run(const float* x, int64_t size, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) Store(y + i, Element<kActivation>(Load(x + i)));
  if (i == size) return;
  float lanes[kLanes] = {};
  for (int64_t rest = i; rest < size; ++rest) lanes[rest - i] = x[rest];
  Store(lanes, Element<kActivation>(Load(lanes)));
  for (int64_t rest = i; rest < size; ++rest) y[rest] = lanes[rest - i];
}

}  // namespace

void Activate(TokenActivation activation, const float* x, int64_t size, float* y) {
  switch (activation) {
    case TokenActivation::kNone:
      return Run<TokenActivation::kNone>(x, size, y);
    case TokenActivation::kRelu:
      return Run<TokenActivation::kRelu>(x, size, y);
    case TokenActivation::kGeluErf:
      return Run<TokenActivation::kGeluErf>(x, size, y);
    case TokenActivation::kGeluTanh:
      return Run<TokenActivation::kGeluTanh>(x, size, y);
    case TokenActivation::kQuickGelu:
      return Run<TokenActivation::kQuickGelu>(x, size, y);
    case TokenActivation::kSilu:
      return Run<TokenActivation::kSilu>(x, size, y);
  }
}

}  // namespace mjp::cpu::MJP_ISA
