#include "kernels/cpu/transformer/layer_norm.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

// Sum over c of (x[c] - center)^Power, Power 1 or 2: four times kSumLanes sums side by side, so
// that rounding errors grow with a quarter of the columns over kSumLanes.
template <int Power>
double RowSum(const float* x, int width, float center) {
  Packet sums[4][kParts];
  for (int i = 0; i < 4 * kParts; ++i) sums[i / kParts][i % kParts] = Broadcast(0);
  const Packet middle = Broadcast(center);
  int c = 0;
  for (; c + kSumLanes <= width; c += kSumLanes) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      Packet& sum = sums[c / kSumLanes & 3][part];
      const Packet d = simd::psub(Load(x + c + part * kLanes), middle);
      sum = Power == 1 ? simd::padd(sum, d) : Fma(d, d, sum);
    }
  }
  float lanes[kSumLanes];
  for (int part = 0; part < kParts; ++part) {
    Store(lanes + part * kLanes, simd::padd(simd::padd(sums[0][part], sums[1][part]),
                                            simd::padd(sums[2][part], sums[3][part])));
  }
  double total = 0;
  for (const float lane : lanes) total += lane;
  for (; c < width; ++c) {
    const double d = double{x[c]} - center;
    total += Power == 1 ? d : d * d;
  }
  return total;
}

// The terms of one row; null where the layer has none.
struct RowTerms {
  const float *weight, *bias, *scale, *shift;
};

Packet Element(const Packet& x, const Packet& mean, const Packet& factor, const RowTerms& terms,
               int c) {
  Packet y = simd::pmul(simd::psub(x, mean), factor);
  if (terms.weight != nullptr) y = Fma(y, Load(terms.weight + c), Load(terms.bias + c));
  if (terms.scale != nullptr) {
    y = Fma(y, simd::padd(Broadcast(1.0f), Load(terms.scale + c)), Load(terms.shift + c));
  }
  return y;
}

void CopyLanes(const float* from, int count, float* to) {
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

// The last columns, fewer than a packet.
void Tail(const float* x, const Packet& mean, const Packet& factor, const RowTerms& terms, int c,
          int count, float* y) {
  float value[kLanes] = {}, lanes[4][kLanes] = {};
  CopyLanes(x + c, count, value);
  const float* of_row[4] = {terms.weight, terms.bias, terms.scale, terms.shift};
  const float* of_lane[4] = {};
  for (int i = 0; i < 4; ++i) {
    if (of_row[i] == nullptr) continue;
    CopyLanes(of_row[i] + c, count, lanes[i]);
    of_lane[i] = lanes[i];
  }
  Store(value,
        Element(Load(value), mean, factor, {of_lane[0], of_lane[1], of_lane[2], of_lane[3]}, 0));
  CopyLanes(value, count, y + c);
}

}  // namespace

void LayerNorm(const LayerNormArgs& args, int row_begin, int row_end) {
  for (int r = row_begin; r < row_end; ++r) {
    const float* x = args.x + r * args.x_pitch;
    float* y = args.y + r * args.y_pitch;
    const int64_t sequence = (r / args.rows_per_sequence) * args.modulation_pitch;
    const RowTerms terms = {args.weight, args.bias,
                            args.scale == nullptr ? nullptr : args.scale + sequence,
                            args.shift == nullptr ? nullptr : args.shift + sequence};
    const auto mean = static_cast<float>(RowSum<1>(x, args.width, 0) / args.width);
    const double variance = RowSum<2>(x, args.width, mean) / args.width;
    const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(variance + args.epsilon));
    const Packet means = Broadcast(mean), factors = Broadcast(factor);
    int c = 0;
    for (; c + kLanes <= args.width; c += kLanes) {
      Store(y + c, Element(Load(x + c), means, factors, terms, c));
    }
    if (c < args.width) Tail(x, means, factors, terms, c, args.width - c, y);
  }
}

void AddResidual(const ResidualArgs& args, int row_begin, int row_end) {
  for (int r = row_begin; r < row_end; ++r) {
    const float* x = args.x + r * args.x_pitch;
    float* y = args.y + r * args.y_pitch;
    const float* gate =
        args.gate == nullptr ? nullptr : args.gate + (r / args.rows_per_sequence) * args.gate_pitch;
    int c = 0;
    for (; c + kLanes <= args.width; c += kLanes) {
      Store(y + c, gate == nullptr ? simd::padd(Load(y + c), Load(x + c))
                                   : Fma(Load(gate + c), Load(x + c), Load(y + c)));
    }
    for (; c < args.width; ++c) {
      y[c] = gate == nullptr ? y[c] + x[c] : __builtin_fmaf(gate[c], x[c], y[c]);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
