#include "policy/cuda/unet/norm_conv_unet.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

NormConvBlock LoadBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                        FilmTerms film) {
  NormConvBlock out;
  out.conv1 =
      loader.NormConv1d(block.conv1, 1, kernel / 2, block.residual ? &*block.residual : nullptr);
  out.conv2 = loader.NormConv1d(block.conv2, 1, kernel / 2, nullptr);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  out.film = film;
  return out;
}

// The first block: its first convolution reads x, whose few channels need no tensor cores.
NormConvBlock LoadFirstBlock(LayerLoader& loader, const ResidualBlock1d& block, int kernel,
                             FilmTerms film, FirstConvArgs& first) {
  NormConvBlock out;
  out.conv2 = loader.NormConv1d(block.conv2, 1, kernel / 2, nullptr);
  out.norm1 = loader.Norm(block.norm1);
  out.norm2 = loader.Norm(block.norm2);
  out.film = film;
  first.taps = kernel;
  first.out_c = static_cast<int>(block.conv1.weight.shape[0]);
  first.in_c = static_cast<int>(block.conv1.weight.shape[1]);
  first.pitch = PaddedChannels(first.in_c);
  first.weight = loader.FirstWeights(block.conv1.weight);
  first.bias = loader.Floats(block.conv1.bias.data);
  if (!block.residual) return out;
  first.shortcut_weight = loader.FirstWeights(block.residual->weight);
  first.shortcut_bias = loader.Floats(block.residual->bias.data);
  return out;
}

}  // namespace

NormConvUnet LoadNormConvUnet(LayerLoader& loader, const Checkpoint& checkpoint, bool measuring) {
  const UnetWeights& unet = UnetOf(checkpoint).unet;
  const int kernel = UnetOf(checkpoint).config.unet.kernel_size;
  NormConvUnet out;
  out.film = LoadFilm(loader, checkpoint, measuring);
  auto film = out.film.blocks.begin();
  bool first = true;
  out.steps = MapUnet(
      unet,
      [&](const ResidualBlock1d& block) {
        return std::exchange(first, false)
                   ? LoadFirstBlock(loader, block, kernel, *film++, out.first)
                   : LoadBlock(loader, block, kernel, *film++);
      },
      [&](const Conv& conv, const UnetPlace& place) {
        return place.upsamples ? loader.NormConvTransposed1d(conv)
                               : loader.NormConv1d(conv, 2, 1, nullptr);
      });
  out.final_conv = loader.NormConv1d(unet.final_conv, 1, kernel / 2, nullptr);
  out.final_norm = loader.Norm(unet.final_norm);
  out.head.out_c = static_cast<int>(unet.out.weight.shape[0]);
  out.head.weight = loader.Operands(unet.out.weight.data);
  out.head.bias = loader.Floats(unet.out.bias.data);
  return out;
}

NormConvUnetPlan::NormConvUnetPlan(const NormConvUnet& unet, Format format, int horizon, int rows,
                                   int rows_per_env, DeviceArena& arena,
                                   const FilmConditioning* conditioning)
    : format_(format),
      rows_(rows),
      arena_(arena),
      conditioning_(conditioning ? conditioning->Shared(rows_per_env)
                                 : FilmConditioning(unet.film, format, rows, rows_per_env, arena)),
      input_pitch_(unet.first.pitch) {
  input_ = Take(horizon, input_pitch_);
  output_ = arena.Take<float>(static_cast<size_t>(rows) * horizon * unet.head.out_c);
  Value x = LowerUnet(
      unet.steps, Value{{}, horizon},
      [&](const NormConvBlock& block, const UnetPlace& place, Value& in, Value* skip) {
        return block.conv1.shape.in_c == 0 ? FirstBlock(block, unet.first, horizon)
                                           : Block(block, in, skip, place.read_twice);
      },
      [&](const DeviceNormConv& conv, const UnetPlace&, Value& in) { return Resample(conv, in); });
  NormConvArgs final_conv = Convolve(unet.final_conv, horizon, horizon);
  final_conv.source[0] = Consume(x);
  pass_.push_back(final_conv);
  HeadArgs head = unet.head;
  head.rows = rows;
  head.length = horizon;
  head.source = DeferredEpilogue(unet.final_norm, final_conv.y, unet.final_conv.shape.out_c);
  head.y = output_;
  pass_.push_back(head);
}

void* NormConvUnetPlan::Take(int length, int channels) {
  return arena_.TakeBytes(static_cast<size_t>(rows_) * length * channels * FormatBytes(format_));
}

NormConvArgs NormConvUnetPlan::Convolve(const DeviceNormConv& conv, int in_length,
                                        int out_length) const {
  NormConvArgs a;
  a.shape = conv.shape;
  a.shape.rows = rows_;
  a.shape.in_length = in_length;
  a.shape.out_length = out_length;
  a.weight = conv.weight;
  a.bias = conv.bias;
  a.shortcut_bias = conv.shortcut_bias;
  const auto take = [&] {
    return arena_.TakeBytes(static_cast<size_t>(rows_) * out_length * conv.shape.phases *
                            conv.shape.out_c * FormatBytes(format_));
  };
  a.y = take();
  if (conv.shape.shortcut) a.shortcut_y = take();
  return a;
}

NormConvSource NormConvUnetPlan::DeferredEpilogue(const DeviceNorm& norm, const void* raw,
                                                  int channels) const {
  NormConvSource s;
  s.x = raw;
  s.channels = channels;
  s.group_channels = channels / norm.groups;
  s.weight = norm.weight;
  s.bias = norm.bias;
  return s;
}

NormConvSource NormConvUnetPlan::Consume(Value& value) const {
  const NormConvSource source = value.source;
  if (source.group_channels > 0 && source.materialized != nullptr) {
    value.source = {};
    value.source.x = source.materialized;
    value.source.channels = source.channels;
  }
  return source;
}

NormConvUnetPlan::Value NormConvUnetPlan::SecondHalf(const NormConvBlock& block, const void* raw,
                                                     const void* residual, int length,
                                                     bool materialize) {
  const int channels = block.conv2.shape.in_c;
  NormConvArgs conv2 = Convolve(block.conv2, length, length);
  conv2.source[0] = DeferredEpilogue(block.norm1, raw, channels);
  conv2.source[0].film = conditioning_.Terms(block.film);
  pass_.push_back(conv2);
  Value out = {DeferredEpilogue(block.norm2, conv2.y, channels), length};
  out.source.residual = residual;
  if (materialize) out.source.materialized = Take(length, channels);
  return out;
}

NormConvUnetPlan::Value NormConvUnetPlan::Block(const NormConvBlock& block, Value& x, Value* skip,
                                                bool materialize) {
  NormConvArgs conv1 = Convolve(block.conv1, x.length, x.length);
  conv1.source[0] = Consume(x);
  if (skip != nullptr) conv1.source[1] = Consume(*skip);
  pass_.push_back(conv1);
  // after Consume, x is materialised wherever the identity needs it
  const void* residual = block.conv1.shape.shortcut ? conv1.shortcut_y : x.source.x;
  return SecondHalf(block, conv1.y, residual, x.length, materialize);
}

NormConvUnetPlan::Value NormConvUnetPlan::FirstBlock(const NormConvBlock& block,
                                                     const FirstConvArgs& first, int horizon) {
  FirstConvArgs a = first;
  a.rows = rows_;
  a.length = horizon;
  a.x = input_;
  a.y = Take(horizon, a.out_c);
  a.shortcut_y = Take(horizon, a.out_c);
  pass_.push_back(a);
  return SecondHalf(block, a.y, a.shortcut_y, horizon, true);
}

NormConvUnetPlan::Value NormConvUnetPlan::Resample(const DeviceNormConv& conv, Value& x) {
  const bool up = conv.shape.phases == 2;
  NormConvArgs a = Convolve(conv, x.length, up ? x.length : x.length / 2);
  a.source[0] = Consume(x);
  pass_.push_back(a);
  Value out;
  out.source.x = a.y;
  out.source.channels = conv.shape.out_c;
  out.length = up ? x.length * 2 : x.length / 2;
  return out;
}

// The sources of each convolution as the plan has them, without memory.
bool NormConvUnetPlan::Supports(const NormConvUnet& unet, Format format, int horizon, int rows) {
  struct ShapeOf {
    NormConvSource source;
    int length = 0;
    bool materializes = false;  // for its second reader
  };
  bool supported = unet.first.shortcut_weight != nullptr;
  const auto raw = [](int channels, const DeviceNorm& norm) {
    NormConvSource s;
    s.channels = channels, s.group_channels = channels / norm.groups;
    return s;
  };
  const auto read = [](ShapeOf& value) {
    const NormConvSource source = value.source;
    if (value.materializes) value.source.group_channels = 0;
    return source;
  };
  const auto convolve = [&](const DeviceNormConv& conv, ShapeOf& x, ShapeOf* skip, int length) {
    NormConvArgs a;
    a.shape = conv.shape;
    a.shape.rows = rows, a.shape.in_length = x.length, a.shape.out_length = length;
    a.source[0] = read(x);
    if (skip) a.source[1] = read(*skip);
    supported = supported && NormConvSupports(format, a);
  };
  ShapeOf x = LowerUnet(
      unet.steps, ShapeOf{{}, horizon},
      [&](const NormConvBlock& block, const UnetPlace& place, ShapeOf& in, ShapeOf* skip) {
        const bool first = block.conv1.shape.in_c == 0;
        if (!first) convolve(block.conv1, in, skip, in.length);
        supported = supported && (first || skip == nullptr || block.conv1.shape.shortcut);
        const int channels = block.conv2.shape.in_c;
        ShapeOf hidden = {raw(channels, block.norm1), in.length};
        convolve(block.conv2, hidden, nullptr, in.length);
        return ShapeOf{raw(channels, block.norm2), in.length, first || place.read_twice};
      },
      [&](const DeviceNormConv& conv, const UnetPlace&, ShapeOf& in) {
        const bool up = conv.shape.phases == 2;
        convolve(conv, in, nullptr, up ? in.length : in.length / 2);
        ShapeOf out;
        out.source.channels = conv.shape.out_c, out.length = up ? in.length * 2 : in.length / 2;
        return out;
      });
  convolve(unet.final_conv, x, nullptr, horizon);
  HeadArgs head = unet.head;
  head.rows = rows, head.length = horizon;
  head.source = raw(unet.final_conv.shape.out_c, unet.final_norm);
  return supported && HeadSupports(format, head);
}

void NormConvUnetPlan::RunPass(const int* row_step, cudaStream_t stream) const {
  for (const Op& op : pass_) {
    if (const auto* conv = std::get_if<NormConvArgs>(&op);
        conv && conv->source[0].film.step_table) {
      NormConvArgs with_step = *conv;
      with_step.source[0].film.row_step = row_step;
      LaunchNormConv(format_, with_step, stream);
    } else {
      LaunchOp(format_, op, stream);
    }
  }
}

}  // namespace mjp
