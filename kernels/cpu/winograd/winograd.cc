#include "kernels/cpu/winograd/winograd.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/product/checked_range.h"
#include "kernels/cpu/winograd/product.h"

namespace mjp::cpu {
namespace {

constexpr int kTilesAtOnce = 48;  // whose values stay in cache; whole tiles of every product
constexpr int kChannelsAtOnce = kWinogradChannelsAtOnce;  // whole panels of every product

// Between the values of a tile, and between their sums, in floats: one line of a cache more than
// they need, as lines that are powers of two apart displace each other.
constexpr int kLine = 16;
constexpr int64_t kSumStride = int64_t{kTilesAtOnce} * kChannelsAtOnce + kLine;
int64_t ValueStride(const WinogradLayer& layer) { return int64_t{kTilesAtOnce} * layer.in + kLine; }

// Floats that a value's weights for kChannelsAtOnce channels take.
int64_t PartSize(const WinogradLayer& layer) { return int64_t{kChannelsAtOnce} * layer.in; }

// A column of the weights: (a, (a + b + c) / 2, (a - b + c) / 2, c), out `step` apart.
void TurnColumn(double a, double b, double c, double* out, int step) {
  out[0] = a;
  out[step] = 0.5 * (a + b + c);
  out[2 * step] = 0.5 * (a - b + c);
  out[3 * step] = c;
}

// A row of them: the polynomial a + b z + c z^2 at 0, 1, -1, 1/2, -2 and infinity, each over the
// product of the point's distances to the others.
void TurnRow(double a, double b, double c, double* out) {
  out[0] = a;
  out[1] = (a + b + c) / 3;
  out[2] = (b - a - c) / 3;
  out[3] = (4 * a + 2 * b + c) * (-4.0 / 15);
  out[4] = (a - 2 * b + 4 * c) / 15;
  out[5] = c;
}

// The nine weights `w` of an input and output channel as those of a tile's values.
void TurnWeights(const float* w, double* turned) {
  double columns[kWinogradRows * 3];
  for (int j = 0; j < 3; ++j) TurnColumn(w[j], w[3 + j], w[6 + j], columns + j, 3);
  for (int i = 0; i < kWinogradRows; ++i)
    TurnRow(columns[3 * i], columns[3 * i + 1], columns[3 * i + 2], turned + kWinogradColumns * i);
}

// Where a tile begins, in the output's coordinates.
struct Corner {
  int map, row, column;
};
Corner CornerOf(const WinogradArgs& args, int tile) {
  const int of_map = args.TilesOfMap(), columns = args.TileColumns(), cell = tile % of_map;
  return {tile / of_map, cell / columns * kWinogradOutRows, cell % columns * kWinogradOutColumns};
}

void TurnTile(const WinogradArgs& args, const Corner& corner, float* values, int64_t stride) {
  const Features& x = args.x;
  const float* inputs[kWinogradValues];
  for (int i = 0; i < kWinogradValues; ++i) {
    const int row = corner.row - 1 + i / kWinogradColumns;
    const int column = corner.column - 1 + i % kWinogradColumns;
    const bool inside = row <= x.height && column <= x.width;  // the halo's first line counts
    inputs[i] = inside ? x.At(corner.map, row, column) : args.layer->zeros.data();
  }
  WinogradInput(inputs, args.layer->in, values, stride);
}

// Channels [begin, begin + count) of a tile's outputs.
void FinishTile(const WinogradArgs& args, const Corner& corner, const float* sums, int begin,
                int count) {
  WinogradOutputArgs out{.sums = sums, .stride = kSumStride};
  out.bias = args.layer->bias.data() + begin;
  out.relu = args.relu;
  out.channels = count;
  for (int i = 0; i < kWinogradOutputs; ++i) {
    const int row = corner.row + i / kWinogradOutColumns,
              column = corner.column + i % kWinogradOutColumns;
    if (row >= args.y.height || column >= args.y.width) continue;
    out.y[i] = args.y.At(corner.map, row, column) + begin;
    if (args.residual.data != nullptr)
      out.residual[i] = args.residual.At(corner.map, row, column) + begin;
  }
  WinogradOutput(out);
}

// What WinogradProduct reads and writes.
void CheckProduct(const WinogradProductArgs& args) {
  const int panel = PanelChannels(), channels = (args.channels + panel - 1) / panel * panel;
  CheckRange(args.weights, size_t{1} * args.value_count * args.depth * channels);
  for (int value = 0; value < args.value_count; ++value) {
    CheckRange(args.values + value * args.value_stride, size_t{1} * args.tiles * args.depth);
    CheckRange(args.sums + value * args.sum_stride,
               static_cast<size_t>((args.tiles - 1) * args.sum_pitch + channels));
  }
}

}  // namespace

WinogradLayer MakeWinograd(const float* weight, const float* bias, int out, int in) {
  WinogradLayer layer{.in = in, .out = out};
  const size_t size = size_t{1} * out * in;
  std::vector<float> turned(kWinogradValues * size);
  for (size_t i = 0; i < size; ++i) {
    double values[kWinogradValues];
    TurnWeights(weight + 9 * i, values);
    for (int v = 0; v < kWinogradValues; ++v) turned[v * size + i] = static_cast<float>(values[v]);
  }
  const int parts = (out + kChannelsAtOnce - 1) / kChannelsAtOnce;
  layer.weights = AlignedBuffer(size_t{1} * parts * kWinogradValues * PartSize(layer));
  float* to = layer.weights.data();
  for (int first = 0; first < out; first += kChannelsAtOnce) {
    for (int v = 0; v < kWinogradValues; ++v) {
      const PackedWeights part = PackWeights(turned.data() + v * size + int64_t{first} * in,
                                             {.in = in,
                                              .out = std::min(kChannelsAtOnce, out - first),
                                              .in_stride = 1,
                                              .out_stride = in});
      to = std::copy_n(part.data.data(), part.data.size(), to);
    }
  }
  layer.bias = AlignedBuffer(out);
  std::copy_n(bias, out, layer.bias.data());
  layer.zeros = AlignedBuffer(in);
  return layer;
}

size_t WinogradScratch(const WinogradLayer& layer) {
  return kWinogradValues * static_cast<size_t>(ValueStride(layer) + kSumStride);
}

// Threads that divide the channels turn the same tiles: a sixteenth of the work where each has 128.
constexpr int kPartsOfThread = 4;

WinogradBlock BlockOfThread(const WinogradArgs& args, int maps, int thread, int threads) {
  const auto border = [&](int count, int i) {
    return static_cast<int>(int64_t{count} * i / threads);
  };
  const int tiles = maps * args.TilesOfMap(), out = args.layer->out;
  const int parts = (out + kChannelsAtOnce - 1) / kChannelsAtOnce;
  if (tiles >= threads * kTilesAtOnce || parts < threads * kPartsOfThread)
    return {border(tiles, thread), border(tiles, thread + 1), 0, out};
  return {0, tiles, border(parts, thread) * kChannelsAtOnce,
          std::min(border(parts, thread + 1) * kChannelsAtOnce, out)};
}

void WinogradConvolve(const WinogradArgs& args, const WinogradBlock& block, float* scratch) {
  const WinogradLayer& layer = *args.layer;
  WinogradProductArgs product{.values = scratch, .value_stride = ValueStride(layer)};
  product.value_count = kWinogradValues;
  product.depth = layer.in;
  product.sums = scratch + kWinogradValues * product.value_stride;
  product.sum_stride = kSumStride;
  product.sum_pitch = kChannelsAtOnce;
  Corner corners[kTilesAtOnce];
  for (int first = block.tile_begin; first < block.tile_end; first += kTilesAtOnce) {
    const int count = std::min(kTilesAtOnce, block.tile_end - first);
    for (int t = 0; t < count; ++t) {
      corners[t] = CornerOf(args, first + t);
      TurnTile(args, corners[t], scratch + int64_t{t} * layer.in, product.value_stride);
    }
    product.tiles = count;
    for (int c = block.channel_begin; c < block.channel_end; c += kChannelsAtOnce) {
      product.weights =
          layer.weights.data() + c / kChannelsAtOnce * kWinogradValues * PartSize(layer);
      product.channels = std::min(kChannelsAtOnce, layer.out - c);
      CheckProduct(product);
      WinogradProduct(product);
      for (int t = 0; t < count; ++t)
        FinishTile(args, corners[t], product.sums + t * kChannelsAtOnce, c, product.channels);
    }
  }
}

}  // namespace mjp::cpu
