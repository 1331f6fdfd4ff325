// The layers of the reader-epilogue and owner-epilogue kernels, as MegakernelLaunch plans them.

#include <algorithm>

#include "policy/cuda/unet/megakernel_launch.h"

namespace mjp {
namespace {

void SetNorm(megakernel::EpilogueSource& source, const DeviceNorm& norm) {
  source.norm_scale = norm.weight;
  source.norm_shift = norm.bias;
  source.group_channels = source.channels / norm.groups;
}

}  // namespace

void MegakernelLaunch::PlanReaderEpilogue(const NormConvUnet& unet) {
  reader_.two_tiles_per_warp = owner_epilogue_;
  Value x = LowerUnet(
      unet.steps, Value{{}, args_.length},
      [&](const NormConvBlock& block, const UnetPlace&, Value& in, Value* skip) {
        return block.conv1.shape.in_c == 0 ? FirstBlock(block, unet.first, in.length)
                                           : Block(block, in, skip);
      },
      [&](const DeviceNormConv& conv, const UnetPlace&, Value& in) { return Resample(conv, in); });
  megakernel::ReaderLayer final_conv = Convolve(unet.final_conv, args_.length, args_.length);
  final_conv.source[0] = Consume(x);
  Value last = {DeferredEpilogue(unet.final_conv), args_.length};
  SetNorm(last.source, unet.final_norm);
  Append(final_conv, last, false);
  args_.last = last.source;
  megakernel::ReaderLayer* layers = arena_.Take<megakernel::ReaderLayer>(reader_layers_.size());
  arena_.Upload(layers, reader_layers_.data(),
                reader_layers_.size() * sizeof(megakernel::ReaderLayer));
  reader_.layers = layers;
  for (const megakernel::ReaderLayer& s : reader_layers_) {
    ctas_ = std::max(ctas_,
                     s.shape.out_c * s.shape.phases / s.m_channels * s.split_k * (rows_ / s.rows));
  }
  reader_.common = args_;
  shared_bytes_ = megakernel::PlanReaderShared(reader_layers_, reader_);
}

float* MegakernelLaunch::TakeTagged(int split_k, int length, int channels) {
  return arena_.Take<float>(static_cast<size_t>(rows_) * split_k * length * channels);
}

megakernel::ReaderLayer MegakernelLaunch::Convolve(const DeviceNormConv& conv, int in_length,
                                                   int out_length) {
  megakernel::ReaderLayer s;
  s.shape = conv.shape;
  s.shape.rows = rows_;
  s.shape.in_length = in_length;
  s.shape.out_length = out_length;
  s.weight = conv.weight;
  return s;
}

// The epilogue of `conv`'s output; its partial sums follow with the plan of the layer.
megakernel::EpilogueSource MegakernelLaunch::DeferredEpilogue(const DeviceNormConv& conv) {
  megakernel::EpilogueSource s;
  s.bias = conv.bias;
  s.channels = conv.shape.out_c;
  s.group_channels = std::max(4, s.channels / 8);
  return s;
}

megakernel::EpilogueSource MegakernelLaunch::Consume(Value& value) const {
  const megakernel::EpilogueSource source = value.source;
  if (source.materialized != nullptr) {
    value.source = {};
    value.source.values = source.materialized;
    value.source.channels = source.channels;
  }
  return source;
}

// Plans the layer and takes the memory of its partial sums; materialises `output` where owners do.
void MegakernelLaunch::Append(megakernel::ReaderLayer& layer, Value& output, bool materialize) {
  const NormConvShape& shape = layer.shape;
  const int length = shape.out_length * shape.phases;
  layer.own = materialize && owner_epilogue_ ? output.source : megakernel::EpilogueSource{};
  if (!megakernel::PlanReaderLayer(layer, owner_epilogue_)) {
    supported_ = false;
    return;
  }
  layer.partial_sums = TakeTagged(layer.split_k, length, shape.out_c);
  if (shape.shortcut) layer.shortcut_partial_sums = TakeTagged(layer.split_k, length, shape.out_c);
  output.source.values = layer.partial_sums;
  output.source.split_k = layer.split_k;
  if (materialize && owner_epilogue_) {
    layer.own = output.source;
    if (layer.own.materialized == nullptr)
      layer.own.materialized = TakeTagged(1, length, shape.out_c);
    output.source = {};
    output.source.values = layer.own.materialized;
    output.source.channels = layer.own.channels;
  }
  reader_layers_.push_back(layer);
}

MegakernelLaunch::Value MegakernelLaunch::SecondHalf(const NormConvBlock& block, Value& hidden,
                                                     const megakernel::EpilogueSource& residual) {
  const int length = hidden.length;
  megakernel::ReaderLayer conv2 = Convolve(block.conv2, length, length);
  conv2.source[0] = hidden.source;
  Value out = {DeferredEpilogue(block.conv2), length};
  SetNorm(out.source, block.norm2);
  out.source.residual = residual.values;
  out.source.shortcut_bias = residual.bias;
  out.source.residual_split_k = residual.split_k;
  out.source.shortcut_of_x = residual.values == nullptr;
  out.source.materialized = TakeTagged(1, length, out.source.channels);
  Append(conv2, out, true);
  return out;
}

MegakernelLaunch::Value MegakernelLaunch::Block(const NormConvBlock& block, Value& x, Value* skip) {
  megakernel::ReaderLayer conv1 = Convolve(block.conv1, x.length, x.length);
  conv1.source[0] = Consume(x);
  if (skip != nullptr) conv1.source[1] = Consume(*skip);
  // after Consume, x is materialised wherever the identity needs it
  if (!block.conv1.shape.shortcut && (skip != nullptr || x.source.bias != nullptr))
    supported_ = false;
  Value hidden = {DeferredEpilogue(block.conv1), x.length};
  SetNorm(hidden.source, block.norm1);
  hidden.source.film_scale = block.film.scale_offset;
  hidden.source.film_bias = block.film.bias_offset;
  Append(conv1, hidden, true);
  megakernel::EpilogueSource residual = x.source;
  if (block.conv1.shape.shortcut && !reader_layers_.empty()) {
    residual = {};
    residual.values = reader_layers_.back().shortcut_partial_sums;
    residual.bias = block.conv1.shortcut_bias;
    residual.split_k = reader_layers_.back().split_k;
  }
  return SecondHalf(block, hidden, residual);
}

MegakernelLaunch::Value MegakernelLaunch::FirstBlock(const NormConvBlock& block,
                                                     const FirstConvArgs& conv, int horizon) {
  Value hidden;
  hidden.length = horizon;
  megakernel::EpilogueSource& s = hidden.source;
  s.bias = conv.bias;
  s.channels = conv.out_c;
  SetNorm(s, block.norm1);
  s.film_scale = block.film.scale_offset;
  s.film_bias = block.film.bias_offset;
  megakernel::EpilogueSource residual;
  residual.bias = conv.shortcut_bias;
  return SecondHalf(block, hidden, residual);
}

MegakernelLaunch::Value MegakernelLaunch::Resample(const DeviceNormConv& conv, Value& x) {
  const bool up = conv.shape.phases == 2;
  megakernel::ReaderLayer layer = Convolve(conv, x.length, up ? x.length : x.length / 2);
  layer.source[0] = Consume(x);
  Value out = {DeferredEpilogue(conv), up ? x.length * 2 : x.length / 2};
  Append(layer, out, true);
  return out;
}

}  // namespace mjp
