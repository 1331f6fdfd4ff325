#include "kernels/cpu/product/product.h"

#include "kernels/cpu/product/checked_range.h"
#include "kernels/cpu/product/tile.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr int kPositions = 96;  // positions whose patches stay in cache, whole tiles

// What ComputeTile reads and writes.
void CheckTile(const TileArgs& args, int positions) {
  CheckRange(args.weights, static_cast<size_t>(args.length) * kPanel);
  if (args.before != nullptr) CheckRange(args.before, static_cast<size_t>(args.channels));
  for (int p = 0; p < positions; ++p) {
    CheckRange(args.x[p] + args.offset, static_cast<size_t>(args.length));
    CheckRange(args.y[p], static_cast<size_t>(args.channels));
  }
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
        const TileArgs tile{.x = x + p,
                            .offset = s * args.segment_stride + k,
                            .length = length,
                            .weights = weights,
                            .before = first ? bias : nullptr,
                            .channels = channels,
                            .y = y + p};
        CheckTile(tile, count);
        ComputeTile(tile, count);
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
  int n = block.batch_begin, row = 0, column = 0;
  for (int64_t begin = int64_t{block.batch_begin} * map; begin < last; begin += kPositions) {
    const float* x[kPositions];
    float* out[kPositions];
    const int positions = last - begin < kPositions ? static_cast<int>(last - begin) : kPositions;
    for (int p = 0; p < positions; ++p) {
      x[p] = args.x + n * args.x_batch + row * args.x_row + column * args.x_column;
      out[p] = y.At(n, row, column * args.column_step);
      if (++column < args.columns) continue;
      column = 0;
      if (++row < y.height) continue;
      row = 0;
      ++n;
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
