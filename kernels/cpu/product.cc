#include "kernels/cpu/product.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr int kPanel = 2 * kLanes;  // output channels of a panel
constexpr int kPiece = 256;         // k whose weights stay in cache
constexpr int kPositions = 64;      // positions whose patches stay in cache
constexpr int kTile = kLanes >= 16 ? 8 : kLanes >= 8 ? 6 : 4;  // positions summed in registers

// Sum of `length` terms for P positions, put (first) or added into y.
template <int P>
void Tile(const float* const* x, int64_t offset, int length, const float* weights, bool first,
          const float* bias, int channels, float* const* y) {
  Packet sum[P][2];
  const float* rows[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    rows[p] = x[p] + offset;
    sum[p][0] = sum[p][1] = Broadcast(0.0f);
  }
  for (int k = 0; k < length; ++k, weights += kPanel) {
    const Packet w0 = simd::pload<Packet>(weights), w1 = simd::pload<Packet>(weights + kLanes);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const Packet value = Broadcast(rows[p][k]);
      sum[p][0] = Fma(value, w0, sum[p][0]);
      sum[p][1] = Fma(value, w1, sum[p][1]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    if (channels == kPanel) {
      const float* before = first ? bias : y[p];
      Store(y[p], simd::padd(Load(before), sum[p][0]));
      Store(y[p] + kLanes, simd::padd(Load(before + kLanes), sum[p][1]));
      continue;
    }
    float lanes[kPanel];
    Store(lanes, sum[p][0]);
    Store(lanes + kLanes, sum[p][1]);
    for (int c = 0; c < channels; ++c) y[p][c] = (first ? bias[c] : y[p][c]) + lanes[c];
  }
}

using TileFunction = void (*)(const float* const*, int64_t, int, const float*, bool, const float*,
                              int, float* const*);

TileFunction TileOf(int positions) {
  static constexpr TileFunction kTiles[8] = {Tile<1>, Tile<2>, Tile<3>, Tile<4>,
                                             Tile<5>, Tile<6>, Tile<7>, Tile<8>};
  return kTiles[positions - 1];
}

// One panel for up to kPositions positions; y points at the panel's first channel.
void Panel(const ProductArgs& args, const float* weights, const float* const* x, float* const* y,
           int positions, const float* bias, int channels) {
  bool first = true;
  for (int s = 0; s < args.segments; ++s) {
    for (int k = 0; k < args.segment_length; k += kPiece) {
      const int left = args.segment_length - k;
      const int length = left < kPiece ? left : kPiece;
      for (int p = 0; p < positions; p += kTile) {
        const int count = positions - p < kTile ? positions - p : kTile;
        TileOf(count)(x + p, s * args.segment_stride + k, length, weights, first, bias, channels,
                      y + p);
      }
      weights += int64_t{length} * kPanel;
      first = false;
    }
  }
}

}  // namespace

int PanelChannels() { return kPanel; }

void Product(const ProductArgs& args, const Block& block) {
  const Features& y = args.y;
  const int map = y.height * args.columns;
  const int64_t depth = int64_t{args.segments} * args.segment_length;
  const int64_t last = int64_t{block.batch_end} * map;
  for (int64_t begin = int64_t{block.batch_begin} * map; begin < last; begin += kPositions) {
    const float* x[kPositions];
    float* out[kPositions];
    const int positions = last - begin < kPositions ? static_cast<int>(last - begin) : kPositions;
    for (int p = 0; p < positions; ++p) {
      const int n = static_cast<int>((begin + p) / map), cell = static_cast<int>((begin + p) % map);
      const int h = cell / args.columns, i = cell % args.columns;
      x[p] = args.x + n * args.x_batch + h * args.x_row + i * args.x_column;
      out[p] = y.At(n, h, i * args.column_step);
    }
    for (int c = block.channel_begin; c < block.channel_end; c += kPanel) {
      float bias[kPanel] = {};
      float* panel_out[kPositions];
      const int channels = block.channel_end - c < kPanel ? block.channel_end - c : kPanel;
      for (int i = 0; args.bias != nullptr && i < channels; ++i) bias[i] = args.bias[c + i];
      for (int p = 0; p < positions; ++p) panel_out[p] = out[p] + c;
      Panel(args, args.weights + c * depth, x, panel_out, positions, bias, channels);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
