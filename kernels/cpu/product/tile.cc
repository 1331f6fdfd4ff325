#include "kernels/cpu/product/tile.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

// The sums of P positions, all in registers.
template <int P>
void Tile(const TileArgs& args) {
  Packet sum[P][2];
  if (args.interleaved != nullptr) {
    Sum(InterleavedRows<P>{args.interleaved}, args.length, args.weights, sum);
  } else {
    Rows<P> rows;
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) rows.row[p] = args.x[p] + args.offset;
    Sum(rows, args.length, args.weights, sum);
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    float* y = args.y[p] + args.channel;
    const float* before = args.before != nullptr ? args.before : y;
    if (args.channels == kPanel) {
      Store(y, simd::padd(Load(before), sum[p][0]));
      Store(y + kLanes, simd::padd(Load(before + kLanes), sum[p][1]));
      continue;
    }
    float lanes[kPanel];
    Store(lanes, sum[p][0]);
    Store(lanes + kLanes, sum[p][1]);
    for (int c = 0; c < args.channels; ++c) y[c] = before[c] + lanes[c];
  }
}

}  // namespace

void ComputeTile(const TileArgs& args, int positions) {
  static constexpr void (*kTiles[8])(const TileArgs&) = {Tile<1>, Tile<2>, Tile<3>, Tile<4>,
                                                         Tile<5>, Tile<6>, Tile<7>, Tile<8>};
  kTiles[positions - 1](args);
}

}  // namespace mjp::cpu::MJP_ISA
