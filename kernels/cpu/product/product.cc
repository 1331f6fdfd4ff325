#include "kernels/cpu/product/product.h"

#include "kernels/cpu/product/checked_range.h"
#include "kernels/cpu/product/interleave.h"
#include "kernels/cpu/product/tile.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {
namespace {

constexpr int kPositions = 144;  // positions whose pieces of patches stay in cache, whole tiles
constexpr int kLine = 16;        // floats of a line of a cache

// Patches that fewer positions or panels read stay where they stand: interleaving costs a third of
// a panel.
constexpr int kPositionsToInterleave = 32, kPanelsToInterleave = 8;

// Up to kPositions positions: their patches, and where their first channels go.
struct Positions {
  const float* x[kPositions];
  float* y[kPositions];
  int count = 0;
};

// What ComputeTile reads and writes.
void CheckTile(const TileArgs& args, int positions) {
  CheckRange(args.weights, static_cast<size_t>(args.length) * kPanel);
  if (args.before != nullptr) CheckRange(args.before, static_cast<size_t>(args.channels));
  for (int p = 0; p < positions; ++p) {
    CheckRange(args.x[p] + args.offset, static_cast<size_t>(args.length));
    CheckRange(args.y[p] + args.channel, static_cast<size_t>(args.channels));
  }
}

// A piece of k: where it begins in a patch and in a panel, and its length.
struct Piece {
  int64_t offset = 0, begin = 0;
  int length = 0;
};

// Calls function(piece) in the order of k.
template <class F>
void ForPieces(const ProductArgs& args, const F& function) {
  Piece piece;
  for (int s = 0; s < args.segments; ++s) {
    for (int k = 0; k < args.segment_length; k += kPiece, piece.begin += piece.length) {
      const int left = args.segment_length - k;
      piece.offset = s * args.segment_stride + k;
      piece.length = left < kPiece ? left : kPiece;
      function(piece);
    }
  }
}

// A panel's piece, but for the positions.
TileArgs TileOf(const ProductArgs& args, const Block& block, int channel, const Piece& piece,
                float (&bias)[kPanel]) {
  const int64_t depth = int64_t{args.segments} * args.segment_length;
  const int left = block.channel_end - channel;
  TileArgs tile{.offset = piece.offset, .length = piece.length};
  tile.weights = args.weights + channel * depth + piece.begin * kPanel;
  tile.channel = channel;
  tile.channels = left < kPanel ? left : kPanel;
  if (piece.begin > 0) return tile;
  tile.before = bias;
  for (int i = 0; i < kPanel; ++i)
    bias[i] = args.bias != nullptr && i < tile.channels ? args.bias[channel + i] : 0.0f;
  return tile;
}

// Calls function(first position, positions) for every tile.
template <class F>
void ForTiles(const Positions& positions, const F& function) {
  for (int p = 0; p < positions.count; p += kTile)
    function(p, positions.count - p < kTile ? positions.count - p : kTile);
}

void Compute(TileArgs& tile, const Positions& positions, int first, int count) {
  tile.x = positions.x + first;
  tile.y = positions.y + first;
  CheckTile(tile, count);
  ComputeTile(tile, count);
}

// Reads the patches where they stand.
void PanelByPanel(const ProductArgs& args, const Block& block, const Positions& positions) {
  for (int c = block.channel_begin; c < block.channel_end; c += kPanel) {
    ForPieces(args, [&](const Piece& piece) {
      float bias[kPanel];
      TileArgs tile = TileOf(args, block, c, piece, bias);
      ForTiles(positions, [&](int p, int count) { Compute(tile, positions, p, count); });
    });
  }
}

// Interleaves a piece of the patches for all panels. The weights of the next panel come into a
// nearer cache meanwhile.
void PieceByPiece(const ProductArgs& args, const Block& block, const Positions& positions) {
  alignas(64) float interleaved[kPositions * kPiece + kLanes];
  const int64_t panel = int64_t{args.segments} * args.segment_length * kPanel;
  const int tiles = (positions.count + kTile - 1) / kTile;
  ForPieces(args, [&](const Piece& piece) {
    ForTiles(positions, [&](int p, int count) {
      Interleave(positions.x + p, piece.offset, count, piece.length,
                 interleaved + p * piece.length);
    });
    const int lines = (piece.length * kPanel / kLine + tiles - 1) / tiles;  // for each tile
    for (int c = block.channel_begin; c < block.channel_end; c += kPanel) {
      float bias[kPanel];
      TileArgs tile = TileOf(args, block, c, piece, bias);
      const float* next = tile.weights + panel;
      ForTiles(positions, [&](int p, int count) {
        for (int i = 0; i < lines; ++i, next += kLine) __builtin_prefetch(next, 0, 2);
        tile.interleaved = interleaved + p * piece.length;
        Compute(tile, positions, p, count);
      });
    }
  });
}

}  // namespace

int PanelChannels() { return kPanel; }

void Product(const ProductArgs& args, const Block& block) {
  const Features& y = args.y;
  const int64_t all = int64_t{block.batch_end - block.batch_begin} * y.height * args.columns;
  const int64_t parts = (all + kPositions - 1) / kPositions;  // of equal size, in whole tiles
  const int64_t size = parts > 0 ? (all + parts * kTile - 1) / (parts * kTile) * kTile : 0;
  int n = block.batch_begin, row = 0, column = 0;
  for (int64_t begin = 0; begin < all; begin += size) {
    Positions positions;
    positions.count = static_cast<int>(all - begin < size ? all - begin : size);
    for (int p = 0; p < positions.count; ++p) {
      positions.x[p] = args.x + n * args.x_batch + row * args.x_row + column * args.x_column;
      positions.y[p] = y.At(n, row, column * args.column_step);
      if (++column < args.columns) continue;
      column = 0;
      if (++row < y.height) continue;
      row = 0;
      ++n;
    }
    if (positions.count >= kPositionsToInterleave &&
        block.channel_end - block.channel_begin >= kPanelsToInterleave * kPanel) {
      PieceByPiece(args, block, positions);
    } else {
      PanelByPanel(args, block, positions);
    }
  }
}

}  // namespace mjp::cpu::MJP_ISA
