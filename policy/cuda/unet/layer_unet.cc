#include "policy/cuda/unet/layer_unet.h"

#include <algorithm>

#include "base/error.h"

namespace mjp {

LayerUnet::LayerUnet(const DeviceUnet& unet, Format format, int horizon, int rows, int rows_per_env,
                     DeviceArena& arena, const FilmConditioning* conditioning)
    : format_(format),
      rows_(rows),
      arena_(arena),
      conditioning_(conditioning ? conditioning->Shared(rows_per_env)
                                 : FilmConditioning(unet.film, format, rows, rows_per_env, arena)) {
  input_pitch_ = std::get<DeviceBlock1d>(unet.steps.front().layer).conv1.shape.in_c;
  input_ = Take(horizon, input_pitch_);
  output_ = arena.Take<float>(static_cast<size_t>(rows) * horizon * unet.out.shape.out_c);

  int widest = 0, length = horizon;
  for (const auto& [place, layer] : unet.steps) {
    if (const auto* block = std::get_if<DeviceBlock1d>(&layer)) {
      widest = std::max(widest, length * block->channels);
    } else {
      length = place.upsamples ? length * 2 : length / 2;
    }
  }
  for (void*& s : scratch_) s = Take(1, widest);

  const Activation1d x = LowerUnet(
      unet.steps, Activation1d{input_, nullptr, 0, input_pitch_, horizon},
      [&](const DeviceBlock1d& block, const UnetPlace&, const Activation1d& in,
          const Activation1d* skip) { return Block(block, skip ? Concatenated(in, *skip) : in); },
      [&](const DeviceConv& conv, const UnetPlace&, const Activation1d& in) {
        return Resample(conv, in);
      });
  GroupNormArgs norm;
  ConvArgs conv = Convolve(unet.final_conv, x, horizon, scratch_[0]);
  pass_.push_back(conv);
  norm.rows = rows, norm.positions = horizon, norm.channels = unet.final_conv.shape.out_c;
  norm.groups = unet.final_norm.groups;
  norm.weight = unet.final_norm.weight, norm.bias = unet.final_norm.bias;
  norm.x = norm.y = scratch_[0];
  norm.activation = Activation::kMish;
  pass_.push_back(norm);
  conv = Convolve(unet.out, {scratch_[0], nullptr, 0, norm.channels, horizon}, horizon, output_);
  conv.y_fp32 = true;
  pass_.push_back(conv);
}

LayerUnet::Activation1d LayerUnet::Concatenated(const Activation1d& x, const Activation1d& skip) {
  return {x.data, skip.data, x.channels, x.channels + skip.channels, x.length};
}

void* LayerUnet::Take(int length, int channels) {
  return arena_.TakeBytes(static_cast<size_t>(rows_) * length * channels * FormatBytes(format_));
}

ConvArgs LayerUnet::Convolve(const DeviceConv& conv, const Activation1d& in, int out_length,
                             void* y) const {
  ConvArgs a;
  a.shape = conv.shape;
  a.shape.batch = rows_;
  a.shape.in_w = in.length;
  a.shape.out_w = out_length;
  a.shape.first_c = in.data2 ? in.first : 0;
  a.x = in.data;
  a.x2 = in.data2;
  a.weight = conv.weight;
  a.bias = conv.bias;
  a.y = y;
  return a;
}

LayerUnet::Activation1d LayerUnet::Block(const DeviceBlock1d& block, const Activation1d& in) {
  const Activation1d hidden = {scratch_[0], nullptr, 0, block.channels, in.length};
  pass_.push_back(Convolve(block.conv1, in, in.length, scratch_[0]));
  GroupNormArgs norm;
  norm.rows = rows_, norm.positions = in.length, norm.channels = block.channels;
  norm.groups = block.norm1.groups;
  norm.weight = block.norm1.weight, norm.bias = block.norm1.bias;
  norm.x = norm.y = scratch_[0];
  norm.activation = Activation::kMish;
  norm.film = conditioning_.Terms(block.film);
  pass_.push_back(norm);
  pass_.push_back(Convolve(block.conv2, hidden, in.length, scratch_[1]));
  const void* residual = in.data;
  if (!block.residual && in.data2 != nullptr)
    throw Unsupported(
        "U-Net level whose output is as wide as its concatenated input: the GPU "
        "kernels need a 1x1 residual there; use the CPU backend");
  if (block.residual) {
    pass_.push_back(Convolve(*block.residual, in, in.length, scratch_[2]));
    residual = scratch_[2];
  }
  norm.film = {};
  norm.groups = block.norm2.groups;
  norm.weight = block.norm2.weight, norm.bias = block.norm2.bias;
  norm.x = scratch_[1];
  norm.residual = residual;
  norm.y = Take(in.length, block.channels);
  pass_.push_back(norm);
  return {norm.y, nullptr, 0, block.channels, in.length};
}

LayerUnet::Activation1d LayerUnet::Resample(const DeviceConv& conv, const Activation1d& in) {
  const bool up = conv.shape.phases == 2;
  const int length = up ? in.length * 2 : in.length / 2;
  void* y = Take(length, conv.shape.out_c);
  pass_.push_back(Convolve(conv, in, up ? in.length : length, y));
  return {y, nullptr, 0, conv.shape.out_c, length};
}

void LayerUnet::RunPass(const int* row_step, cudaStream_t stream) const {
  for (const Op& op : pass_) {
    if (const auto* norm = std::get_if<GroupNormArgs>(&op); norm && norm->film.step_table) {
      GroupNormArgs with_step = *norm;
      with_step.film.row_step = row_step;
      LaunchGroupNorm(format_, with_step, stream);
    } else {
      LaunchOp(format_, op, stream);
    }
  }
}

}  // namespace mjp
