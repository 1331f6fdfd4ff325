#include "kernels/cpu/conv.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace mjp::cpu {
namespace {

AlignedBuffer CopyOf(const float* bias, int size) {
  AlignedBuffer copy(size);
  if (bias != nullptr) std::copy(bias, bias + size, copy.data());
  return copy;
}

// Packs the panels [begin, end) of `panel` out channels each.
void PackPanels(const float* source, const WeightLayout& layout, int panel, int first, int last,
                PackedWeights& packed) {
  constexpr int kBlock = 64;  // inputs at a time: source and panel lines stay in the nearest cache
  for (int p = first; p < last; ++p) {
    float* out = packed.data.data() + int64_t{p} * panel * packed.depth;
    const int count = std::min(panel, layout.out - p * panel);
    for (int begin = 0; begin < layout.in; begin += kBlock) {
      const int end = std::min(begin + kBlock, layout.in);
      for (int o = 0; o < count; ++o) {
        const float* from = source + (int64_t{p} * panel + o) * layout.out_stride;
        for (int i = begin; i < end; ++i) {
          for (int64_t t = 0; t < layout.taps; ++t) {
            out[(t * layout.in + i) * panel + o] =
                from[t * layout.tap_stride + i * layout.in_stride];
          }
        }
      }
    }
  }
}

}  // namespace

PackedWeights PackWeights(const float* source, const WeightLayout& layout) {
  constexpr int64_t kElementsOfThread = 1 << 18;  // below, a thread costs more than it saves
  constexpr int kMostThreads = 8;
  const int panel = PanelChannels();
  const int panels = (layout.out + panel - 1) / panel;
  const int64_t depth = int64_t{layout.taps} * layout.in, size = panels * panel * depth;
  PackedWeights packed{static_cast<int>(depth), layout.out,
                       AlignedBuffer(static_cast<size_t>(size))};
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = std::clamp(static_cast<int>(size / kElementsOfThread), 1,
                                 std::min({kMostThreads, cores, panels}));
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back([&, i] {
      PackPanels(source, layout, panel, panels * i / threads, panels * (i + 1) / threads, packed);
    });
  PackPanels(source, layout, panel, 0, panels / threads, packed);
  others.clear();  // joins
  return packed;
}

ConvLayer MakeConv1d(const float* weight, const float* bias, int out, int in, int kernel,
                     int stride) {
  ConvLayer layer{.in = in, .out = out, .kernel_w = kernel, .stride = stride, .pad_w = kernel / 2};
  layer.weights[0] = PackWeights(weight, {.taps = kernel,
                                          .in = in,
                                          .out = out,
                                          .tap_stride = 1,
                                          .in_stride = kernel,
                                          .out_stride = int64_t{kernel} * in});
  layer.bias = CopyOf(bias, out);
  return layer;
}

// y[2 j + phase] reads x[j - 1 + phase] and x[j + phase], through taps 3 - phase and 1 - phase
ConvLayer MakeTransposedConv1d(const float* weight, const float* bias, int out, int in) {
  ConvLayer layer{.in = in, .out = out, .kernel_w = 2, .stride = 1, .pad_w = 1, .transposed = true};
  for (int phase = 0; phase < 2; ++phase) {
    layer.weights[phase] = PackWeights(weight + 3 - phase, {.taps = 2,
                                                            .in = in,
                                                            .out = out,
                                                            .tap_stride = -2,
                                                            .in_stride = int64_t{4} * out,
                                                            .out_stride = 4});
  }
  layer.bias = CopyOf(bias, out);
  return layer;
}

ConvLayer MakeConv2d(const float* weight, const float* bias, int out, int in, int kernel,
                     int stride) {
  ConvLayer layer = MakeConv1d(weight, bias, out, in, kernel * kernel, stride);
  layer.kernel_h = layer.kernel_w = kernel;
  layer.pad_h = layer.pad_w = kernel / 2;
  return layer;
}

ConvLayer MakeLinear(const float* weight, const float* bias, int out, int in, int in_pitch) {
  ConvLayer layer{.in = in, .out = out};
  layer.weights[0] =
      PackWeights(weight, {.in = in, .out = out, .in_stride = 1, .out_stride = in_pitch});
  layer.bias = CopyOf(bias, out);
  return layer;
}

void Convolve(const ConvLayer& layer, const Features& x, const Features& y, const Block& block) {
  ProductArgs args{.y = y, .columns = y.width};
  args.x = x.At(0, -layer.pad_h, -layer.pad_w);
  args.x_batch = x.BatchStride();
  args.x_row = layer.stride * x.RowStride();
  args.x_column = int64_t{layer.stride} * x.pitch;
  args.bias = layer.bias.data();
  if (x.pitch == layer.in) {  // one kernel row is one run
    args.segments = layer.kernel_h;
    args.segment_length = layer.kernel_w * layer.in;
    args.segment_stride = x.RowStride();
  } else {  // a slice of wider maps: every tap is its own run; 1-D only
    args.segments = layer.kernel_w;
    args.segment_length = layer.in;
    args.segment_stride = x.pitch;
  }
  if (!layer.transposed) {
    args.weights = layer.weights[0].data.data();
    Product(args, block);
    return;
  }
  args.columns = x.width;
  args.column_step = 2;
  for (int phase = 0; phase < 2; ++phase) {
    args.weights = layer.weights[phase].data.data();
    args.y.data = y.data + phase * y.pitch;
    args.x = x.At(0, 0, phase - 1);
    Product(args, block);
  }
}

void LinearRows(const ConvLayer& layer, const float* x, int64_t x_pitch, int rows, float* y,
                int64_t y_pitch, int channel_begin, int channel_end) {
  ProductArgs args{.columns = 1};
  args.y = {.data = y,
            .batch = rows,
            .width = 1,
            .channels = layer.out,
            .pitch = static_cast<int>(y_pitch)};
  args.x = x;
  args.x_batch = x_pitch;
  args.segment_length = layer.in;
  args.weights = layer.weights[0].data.data();
  args.bias = layer.bias.data();
  Product(args, {0, rows, channel_begin, channel_end});
}

}  // namespace mjp::cpu
