#include "kernels/cpu/winograd/product.h"

#include "kernels/cpu/product/sums.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

// One panel for P tiles, over a piece of k.
template <int P>
void Tiles(const WinogradProductArgs& args, const float* x, int length, const float* weights,
           bool first, float* y) {
  Packet sum[P][2];
  Rows<P> rows;
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) rows.row[p] = x + p * args.depth;
  Sum(rows, length, weights, sum);
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p, y += args.sum_pitch) {
    Store(y, first ? sum[p][0] : simd::padd(Load(y), sum[p][0]));
    Store(y + kLanes, first ? sum[p][1] : simd::padd(Load(y + kLanes), sum[p][1]));
  }
}

// One panel of one value.
void Panel(const WinogradProductArgs& args, const float* x, const float* weights, float* y) {
  static constexpr decltype(&Tiles<1>) kTiles[8] = {Tiles<1>, Tiles<2>, Tiles<3>, Tiles<4>,
                                                    Tiles<5>, Tiles<6>, Tiles<7>, Tiles<8>};
  for (int k = 0; k < args.depth; k += kPiece) {
    const int length = args.depth - k < kPiece ? args.depth - k : kPiece;
    int t = 0;
    for (; t + kTile <= args.tiles; t += kTile) {
      Tiles<kTile>(args, x + int64_t{t} * args.depth + k, length, weights, k == 0,
                   y + t * args.sum_pitch);
    }
    if (t < args.tiles) {
      kTiles[args.tiles - t - 1](args, x + int64_t{t} * args.depth + k, length, weights, k == 0,
                                 y + t * args.sum_pitch);
    }
    weights += int64_t{length} * kPanel;
  }
}

}  // namespace

void WinogradProduct(const WinogradProductArgs& args) {
  const float* weights = args.weights;
  for (int value = 0; value < args.value_count; ++value) {
    for (int c = 0; c < args.channels; c += kPanel, weights += int64_t{args.depth} * kPanel) {
      Panel(args, args.values + value * args.value_stride, weights,
            args.sums + value * args.sum_stride + c);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
