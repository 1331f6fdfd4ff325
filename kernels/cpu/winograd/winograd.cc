#include "kernels/cpu/winograd/winograd.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/winograd/transform.h"

namespace mjp::cpu {
namespace {

constexpr int kTilesAtOnce = 64;  // whose values and sums stay in cache

constexpr double kTurn[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

// Value `value` (row by row) of the nine weights `w`.
float TurnedWeight(const float* w, int value) {
  const double *row = kTurn[value / 4], *column = kTurn[value % 4];
  double sum = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) sum += row[i] * column[j] * w[3 * i + j];
  return static_cast<float>(sum);
}

// Where a tile begins, in the output's coordinates.
struct Corner {
  int map, row, column;
};
Corner CornerOf(const WinogradArgs& args, int tile) {
  const int of_map = args.TilesOfMap(), columns = (args.y.width + 1) / 2, cell = tile % of_map;
  return {tile / of_map, cell / columns * 2, cell % columns * 2};
}

void TurnTile(const WinogradArgs& args, int tile, float* values, int64_t stride) {
  const Features& x = args.x;
  const Corner corner = CornerOf(args, tile);
  const float* inputs[kWinogradValues];
  for (int i = 0; i < kWinogradValues; ++i) {
    const int row = corner.row - 1 + i / 4, column = corner.column - 1 + i % 4;
    const bool inside = row <= x.height && column <= x.width;  // the halo's first line counts
    inputs[i] = inside ? x.At(corner.map, row, column) : args.layer->zeros.data();
  }
  WinogradInput(inputs, args.layer->in, values, stride);
}

void FinishTile(const WinogradArgs& args, int tile, const float* sums, int64_t stride) {
  const Corner corner = CornerOf(args, tile);
  WinogradOutputArgs out{.sums = sums, .stride = stride, .bias = args.layer->bias.data()};
  out.relu = args.relu;
  out.channels = args.layer->out;
  for (int i = 0; i < 4; ++i) {
    const int row = corner.row + i / 2, column = corner.column + i % 2;
    if (row >= args.y.height || column >= args.y.width) continue;
    out.y[i] = args.y.At(corner.map, row, column);
    if (args.residual.data != nullptr) out.residual[i] = args.residual.At(corner.map, row, column);
  }
  WinogradOutput(out);
}

}  // namespace

WinogradLayer MakeWinograd(const float* weight, const float* bias, int out, int in) {
  WinogradLayer layer{.in = in, .out = out};
  std::vector<float> turned(size_t{1} * out * in);
  for (int value = 0; value < kWinogradValues; ++value) {
    for (size_t i = 0; i < turned.size(); ++i) turned[i] = TurnedWeight(weight + 9 * i, value);
    layer.weights[value] =
        PackWeights(turned.data(), {.in = in, .out = out, .in_stride = 1, .out_stride = in});
  }
  layer.bias = AlignedBuffer(out);
  std::copy_n(bias, out, layer.bias.data());
  layer.zeros = AlignedBuffer(in);
  return layer;
}

size_t WinogradScratch(const WinogradLayer& layer) {
  return size_t{kWinogradValues} * kTilesAtOnce * (layer.in + layer.out);
}

void WinogradConvolve(const WinogradArgs& args, int begin, int end, float* scratch) {
  const WinogradLayer& layer = *args.layer;
  const int64_t in = int64_t{kTilesAtOnce} * layer.in, out = int64_t{kTilesAtOnce} * layer.out;
  float* const sums = scratch + kWinogradValues * in;
  for (int first = begin; first < end; first += kTilesAtOnce) {
    const int count = std::min(kTilesAtOnce, end - first);
    for (int t = 0; t < count; ++t) TurnTile(args, first + t, scratch + int64_t{t} * layer.in, in);
    for (int value = 0; value < kWinogradValues; ++value) {
      ProductArgs product{.columns = 1};
      product.y = {.data = sums + value * out,
                   .batch = count,
                   .width = 1,
                   .channels = layer.out,
                   .pitch = layer.out};
      product.x = scratch + value * in;
      product.x_batch = layer.in;
      product.segment_length = layer.in;
      product.weights = layer.weights[value].data.data();
      Product(product, {0, count, 0, layer.out});
    }
    for (int t = 0; t < count; ++t) FinishTile(args, first + t, sums + int64_t{t} * layer.out, out);
  }
}

}  // namespace mjp::cpu
