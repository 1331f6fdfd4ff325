#include "kernels/cpu/winograd/transform.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

// One dimension of the inputs: (a - c, b + c, c - b, b - d), `step` apart.
void TurnInput(const Packet* in, Packet* out, int step) {
  const Packet a = in[0], b = in[step], c = in[2 * step], d = in[3 * step];
  out[0] = simd::psub(a, c);
  out[step] = simd::padd(b, c);
  out[2 * step] = simd::psub(c, b);
  out[3 * step] = simd::psub(b, d);
}

// One dimension of the outputs: (a + b + c, b - c - d).
void TurnSums(const Packet* in, int step, Packet* first, Packet* second) {
  const Packet b = in[step], c = in[2 * step];
  *first = simd::padd(simd::padd(in[0], b), c);
  *second = simd::psub(simd::psub(b, c), in[3 * step]);
}

}  // namespace

void WinogradInput(const float* const* x, int channels, float* values, int64_t stride) {
  for (int c = 0; c < channels; c += kLanes) {
    Packet tile[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) tile[i] = Load(x[i] + c);
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row) TurnInput(tile + 4 * row, tile + 4 * row, 1);
#pragma GCC unroll 4
    for (int column = 0; column < 4; ++column) TurnInput(tile + column, tile + column, 4);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) Store(values + i * stride + c, tile[i]);
  }
}

void WinogradOutput(const WinogradOutputArgs& args) {
  for (int c = 0; c < args.channels; c += kLanes) {
    Packet sums[16], halves[8], out[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = Load(args.sums + i * args.stride + c);
#pragma GCC unroll 4
    for (int row = 0; row < 4; ++row)
      TurnSums(sums + 4 * row, 1, halves + 2 * row, halves + 2 * row + 1);
    TurnSums(halves, 2, out, out + 2);
    TurnSums(halves + 1, 2, out + 1, out + 3);
    const Packet bias = Load(args.bias + c);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (args.y[i] == nullptr) continue;
      Packet v = simd::padd(out[i], bias);
      if (args.residual[i] != nullptr) v = simd::padd(v, Load(args.residual[i] + c));
      if (args.relu) v = Max(v, Broadcast(0.0f));
      Store(args.y[i] + c, v);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
