#include "policy/cuda/unet/row_kernel_plan.h"

#include <utility>

namespace mjp {
namespace {

using row_kernel::Buffer;
using row_kernel::Convolution;
using row_kernel::kBlockChannels;

constexpr int kHalo = 2;  // of the widest kernel

// A value of the graph and how often it is still read.
struct Value {
  Buffer buffer;
  int reads = 1;
};

// Channels of x in shared memory.
int InputChannels(const FirstConvWeights& first) {
  return (first.in_c + kBlockChannels - 1) / kBlockChannels * kBlockChannels;
}

// Lowers a network into a plan.
class Lowering {
 public:
  Lowering(const NormConvUnet& unet, int horizon, row_kernel::Plan& plan)
      : unet_(unet), plan_(plan), x_{plan.Take(horizon, InputChannels(unet.first))} {
    // of its own: a CTA may still read it when others are at the next pass' first layers
    const Buffer last_output = plan.Take(horizon, plan.Kept(unet.final_conv.shape.out_c));
    Value last = LowerUnet(
        unet.steps, x_,
        [&](const NormConvBlock& block, const UnetPlace& place, Value& in, Value* skip) {
          return Block(block, place, in, skip);
        },
        [&](const DeviceNormConv& conv, const UnetPlace& place, Value& in) {
          return Resample(conv, place, in);
        });
    Convolution final_conv = Convolve(unet.final_conv.shape, last.buffer, horizon);
    final_conv.groups = unet.final_norm.groups;
    plan.GiveBack(std::exchange(final_conv.output, last_output));
    plan.Add(final_conv);
    AddHead(final_conv.output);
    plan.Finish();
  }
  const Buffer& x() const { return x_.buffer; }
  bool Supported() const { return supported_ && plan_.Supported(); }

 private:
  Convolution Convolve(const NormConvShape& shape, const Buffer& x, int out_length) {
    Convolution c;
    c.in_c = shape.in_c, c.out_c = shape.out_c;
    c.taps = shape.taps, c.stride = shape.stride, c.pad = shape.pad;
    c.out_length = out_length, c.phases = shape.phases;
    c.shortcut = shape.shortcut;
    c.source[0] = x;
    c.output = plan_.Take(out_length * shape.phases, plan_.Kept(shape.out_c));
    return c;
  }

  // The first convolution: of fewer channels than a product takes.
  Convolution ConvolveFirst(const Buffer& x) {
    const FirstConvWeights& f = unet_.first;
    NormConvShape shape;
    shape.in_c = InputChannels(f), shape.out_c = f.out_c;
    shape.taps = f.taps, shape.pad = f.taps / 2;
    shape.shortcut = f.shortcut_weight != nullptr;
    return Convolve(shape, x, x.length);
  }

  void Read(Value& value) {
    if (--value.reads == 0) plan_.GiveBack(value.buffer);
  }

  Value Block(const NormConvBlock& block, const UnetPlace& place, Value& in, Value* skip) {
    const int length = in.buffer.length;
    const bool first = block.conv1.shape.in_c == 0;
    Convolution conv1 =
        first ? ConvolveFirst(in.buffer) : Convolve(block.conv1.shape, in.buffer, length);
    if (skip) conv1.source[1] = skip->buffer;
    conv1.groups = block.norm1.groups;
    conv1.film_scale = block.film.scale_offset, conv1.film_bias = block.film.bias_offset;
    plan_.Add(conv1);
    Convolution conv2 = Convolve(block.conv2.shape, conv1.output, length);
    conv2.groups = block.norm2.groups;
    conv2.adds_shortcut = conv1.shortcut;
    if (!conv2.adds_shortcut) {
      conv2.residual = in.buffer;
      supported_ = supported_ && skip == nullptr && !first;  // no identity of concatenated channels
    }
    plan_.Add(conv2);
    plan_.GiveBack(conv1.output);
    if (!first) Read(in);  // x stays where the next step puts it
    if (skip) Read(*skip);
    return {conv2.output, 1 + place.gives_skip};
  }

  Value Resample(const DeviceNormConv& conv, const UnetPlace& place, Value& in) {
    const bool up = conv.shape.phases == 2;
    const Convolution c =
        Convolve(conv.shape, in.buffer, up ? in.buffer.length : in.buffer.length / 2);
    plan_.Add(c);
    Read(in);
    return {c.output, 1 + place.gives_skip};
  }

  void AddHead(const Buffer& in) {
    Convolution c;
    c.in_c = unet_.final_conv.shape.out_c, c.out_c = unet_.head.out_c;
    c.out_length = in.length;
    c.source[0] = in;
    plan_.Add(c);
  }

  const NormConvUnet& unet_;
  row_kernel::Plan& plan_;
  Value x_;
  bool supported_ = true;
};

}  // namespace

std::optional<RowKernelPlan> PlanRowKernel(const NormConvUnet& unet, Format format, int horizon,
                                           const row_kernel::Config& config, const GpuTraits& gpu) {
  if (FormatBytes(format) != 2 || horizon * unet.head.out_c > row_kernel::kMaxElements ||
      config.ctas > gpu.ClusterBlocks() ||
      (config.clusters > 1 && (!gpu.cooperative || config.clusters * config.ctas >
                                                       gpu.MultiprocessorsInClusters(config.ctas))))
    return std::nullopt;
  RowKernelPlan planned = {config, row_kernel::Plan(config, kHalo), {}};
  const Lowering lowering(unet, horizon, planned.plan);
  if (!lowering.Supported() || planned.plan.shared().end > gpu.shared_bytes) return std::nullopt;
  planned.x = lowering.x();
  return planned;
}

}  // namespace mjp
