#include "kernels/cpu/winograd/transform.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr int kRows = kWinogradRows, kColumns = kWinogradColumns;
constexpr int kOutColumns = kWinogradOutColumns;

Packet Times(float factor, const Packet& v, const Packet& more) {
  return Fma(Broadcast(factor), v, more);
}

// A column of inputs, kColumns apart: (a - c, b + c, c - b, b - d).
void TurnColumn(Packet* x) {
  const Packet a = x[0], b = x[kColumns], c = x[2 * kColumns], d = x[3 * kColumns];
  x[0] = simd::psub(a, c);
  x[kColumns] = simd::padd(b, c);
  x[2 * kColumns] = simd::psub(c, b);
  x[3 * kColumns] = simd::psub(b, d);
}

// A row of inputs: the products of all (z - p) but one, for the points 0, 1, -1, 1/2 and -2, and
// of all.
void TurnRow(const Packet* x, Packet* out) {
  const Packet even = simd::psub(x[4], x[2]), odd = simd::psub(x[3], x[1]);
  const Packet sum = Times(1.5f, x[3], even), difference = Times(1.5f, x[2], odd);
  out[0] = Times(1.5f, odd, simd::padd(simd::psub(x[0], x[2]), even));
  out[1] = simd::padd(sum, difference);
  out[2] = simd::psub(sum, difference);
  out[3] = Times(2.0f, odd, even);
  out[4] = Times(-0.5f, odd, even);
  out[5] = Times(1.5f, even, simd::psub(simd::psub(x[5], x[3]), odd));
}

// A column of sums, kColumns apart: (a + b + c, b - c - d).
void TurnSumsOfColumn(const Packet* x, Packet* first, Packet* second) {
  const Packet b = x[kColumns], c = x[2 * kColumns];
  *first = simd::padd(simd::padd(x[0], b), c);
  *second = simd::psub(simd::psub(b, c), x[3 * kColumns]);
}

// A row of sums: output i is the sum of p^i x over the points p.
[[gnu::always_inline]] inline void TurnSumsOfRow(const Packet* x, Packet* out) {
  const Packet sum = simd::padd(x[1], x[2]), difference = simd::psub(x[1], x[2]);
  out[0] = simd::padd(simd::padd(x[0], sum), simd::padd(x[3], x[4]));
  out[1] = Times(-2.0f, x[4], Times(0.5f, x[3], difference));
  out[2] = Times(4.0f, x[4], Times(0.25f, x[3], sum));
  out[3] = simd::padd(Times(-8.0f, x[4], Times(0.125f, x[3], difference)), x[5]);
}

}  // namespace

void WinogradInput(const float* const* x, int channels, float* values, int64_t stride) {
  for (int c = 0; c < channels; c += kLanes) {
    Packet tile[kWinogradValues], row[kColumns];
#pragma GCC unroll 24
    for (int i = 0; i < kWinogradValues; ++i) tile[i] = Load(x[i] + c);
#pragma GCC unroll 6
    for (int i = 0; i < kColumns; ++i) TurnColumn(tile + i);
    float* to = values + c;
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      TurnRow(tile + i * kColumns, row);
#pragma GCC unroll 6
      for (int j = 0; j < kColumns; ++j, to += stride) Store(to, row[j]);
    }
  }
}

void WinogradOutput(const WinogradOutputArgs& args) {
  for (int c = 0; c < args.channels; c += kLanes) {
    Packet sums[kWinogradValues], halves[2][kColumns], out[kWinogradOutputs];
#pragma GCC unroll 24
    for (int i = 0; i < kWinogradValues; ++i) sums[i] = Load(args.sums + i * args.stride + c);
#pragma GCC unroll 6
    for (int i = 0; i < kColumns; ++i) TurnSumsOfColumn(sums + i, halves[0] + i, halves[1] + i);
    TurnSumsOfRow(halves[0], out);
    TurnSumsOfRow(halves[1], out + kOutColumns);
    const Packet bias = Load(args.bias + c);
#pragma GCC unroll 8
    for (int i = 0; i < kWinogradOutputs; ++i) {
      if (args.y[i] == nullptr) continue;
      Packet v = simd::padd(out[i], bias);
      if (args.residual[i] != nullptr) v = simd::padd(v, Load(args.residual[i] + c));
      if (args.relu) v = Max(v, Broadcast(0.0f));
      Store(args.y[i] + c, v);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
