#include "kernels/cpu/winograd/winograd.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/winograd/transform.h"

namespace mjp::cpu {
namespace {

constexpr int kTilesAtOnce = 64;  // whose values and sums stay in cache

// One dimension of the weights: (a, (a + b + c) / 2, (a - b + c) / 2, c), out `step` apart.
void TurnWeights(double a, double b, double c, double* out, int step) {
  out[0] = a;
  out[step] = 0.5 * (a + b + c);
  out[2 * step] = 0.5 * (a - b + c);
  out[3 * step] = c;
}

// The nine weights `w` of an input and output channel as 16 of a tile's values.
void TurnWeights(const float* w, double* turned) {
  double columns[12];  // (4, 3)
  for (int j = 0; j < 3; ++j) TurnWeights(w[j], w[3 + j], w[6 + j], columns + j, 3);
  for (int i = 0; i < 4; ++i)
    TurnWeights(columns[3 * i], columns[3 * i + 1], columns[3 * i + 2], turned + 4 * i, 1);
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
  const size_t size = size_t{1} * out * in;
  std::vector<float> turned(kWinogradValues * size);
  for (size_t i = 0; i < size; ++i) {
    double values[kWinogradValues];
    TurnWeights(weight + 9 * i, values);
    for (int v = 0; v < kWinogradValues; ++v) turned[v * size + i] = static_cast<float>(values[v]);
  }
  for (int v = 0; v < kWinogradValues; ++v) {
    layer.weights[v] = PackWeights(turned.data() + v * size,
                                   {.in = in, .out = out, .in_stride = 1, .out_stride = in});
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
