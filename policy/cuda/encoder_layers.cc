#include "policy/cuda/encoder_layers.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernels/cuda/encoder_kernel/plan.h"

namespace mjp {
namespace {

void CheckWidth(int channels, const char* what) {
  if (channels % 8 == 0) return;
  throw Unsupported("picture encoder: " + std::to_string(channels) + " " + what +
                    "; the GPU kernels take multiples of 8; use the CPU backend");
}

// The Linear after a flatten of (channels, cells), for features that lie as (cells, channels).
Linear ChannelLast(const Linear& linear, int channels) {
  Linear out = linear;
  const int64_t rows = linear.weight.shape[0], columns = linear.weight.shape[1];
  const int64_t cells = columns / channels;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t cell = 0; cell < cells; ++cell)
        out.weight.data[r * columns + cell * channels + c] =
            linear.weight.data[r * columns + c * cells + cell];
  return out;
}

// A convolution of stride 2 as one of stride 1 over 2x2 pixels in one place, 4 channels each: a
// tap of the new kernel is 2x2 taps of the old one, zero outside it. Fewer zeros for the tensor
// cores than three channels padded to eight.
Conv SpaceToDepthStem(const Conv& stem) {
  const int64_t out_c = stem.weight.shape[0], in_c = stem.weight.shape[1];
  const int64_t kernel = stem.weight.shape[2], pad = kernel / 2, new_pad = (pad + 1) / 2;
  const int64_t skipped = 2 * new_pad - pad, taps = (kernel + skipped + 1) / 2;
  Conv conv;
  conv.bias = stem.bias;
  conv.weight.shape = {out_c, 16, taps, taps};
  conv.weight.data.assign(out_c * 16 * taps * taps, 0.0f);
  for (int64_t o = 0; o < out_c; ++o)
    for (int64_t i = 0; i < in_c; ++i)
      for (int64_t ky = 0; ky < kernel; ++ky)
        for (int64_t kx = 0; kx < kernel; ++kx) {
          const int64_t y = ky + skipped, x = kx + skipped;
          const int64_t channel = (y % 2 * 2 + x % 2) * 4 + i;
          conv.weight.data[((o * 16 + channel) * taps + y / 2) * taps + x / 2] =
              stem.weight.data[((o * in_c + i) * kernel + ky) * kernel + kx];
        }
  return conv;
}

int Halved(int size, int stride) { return (size - 1) / stride + 1; }

// Of a picture of this size.
ConvShape ShapeAt(const DeviceConv& conv, int height, int width) {
  ConvShape shape = conv.shape;
  shape.in_h = height, shape.in_w = width;
  shape.out_h = Halved(height, shape.stride), shape.out_w = Halved(width, shape.stride);
  return shape;
}

// The residual blocks as the encoder kernel takes them, of an input of this size; with the stem
// where `stem` says so.
encoder_kernel::Encoder SizedEncoder(const DeviceEncoder& encoder, bool stem, int height,
                                     int width) {
  encoder_kernel::Encoder out;
  const auto sized = [&](const DeviceConv& conv, const DeviceNorm& norm) {
    return encoder_kernel::Convolution{
        ShapeAt(conv, height, width), conv.weight, conv.bias, norm.groups, norm.weight, norm.bias};
  };
  if (stem) {
    out.stem = sized(encoder.stem, encoder.stem_norm);
    height = out.stem->shape.out_h, width = out.stem->shape.out_w;
  }
  for (const DeviceBasicBlock2d& block : encoder.blocks) {
    encoder_kernel::Block& b = out.blocks.emplace_back();
    if (block.downsample) b.shortcut = sized(*block.downsample, block.downsample_norm);
    b.first = sized(block.conv1, block.norm1);
    height = b.first.shape.out_h, width = b.first.shape.out_w;
    b.second = sized(block.conv2, block.norm2);
  }
  return out;
}

}  // namespace

DeviceEncoder LoadDeviceEncoder(LayerLoader& loader, const EncoderConfig& config,
                                const EncoderWeights& weights, int picture_height,
                                int picture_width) {
  CheckWidth(config.stem_channels, "stem channels");
  for (int channels : config.stage_channels) CheckWidth(channels, "channels in a stage");
  DeviceEncoder out;
  const int height = config.crop_height ? config.crop_height : picture_height;
  const int width = config.crop_width ? config.crop_width : picture_width;
  const int pad = config.stem_kernel / 2;
  out.space_to_depth = config.stem_stride == 2 && height % 2 == 0 && width % 2 == 0;
  out.stem = out.space_to_depth ? loader.Conv2d(SpaceToDepthStem(weights.stem), 1, (pad + 1) / 2)
                                : loader.Conv2d(weights.stem, config.stem_stride, pad);
  out.stem_norm = loader.Norm(weights.stem_norm);
  for (const BasicBlock2d& block : weights.blocks) {
    DeviceBasicBlock2d& b = out.blocks.emplace_back();
    b.conv1 = loader.Conv2d(block.conv1, block.stride, 1);
    b.conv2 = loader.Conv2d(block.conv2, 1, 1);
    b.norm1 = loader.Norm(block.norm1);
    b.norm2 = loader.Norm(block.norm2);
    if (block.downsample) {
      b.downsample = loader.Conv2d(*block.downsample, block.stride, 0);
      b.downsample_norm = loader.Norm(block.downsample_norm);
    }
  }
  if (config.pool == PoolKind::kAverage || config.pool == PoolKind::kNone) return out;
  out.pool_conv = loader.Conv2d(weights.pool_conv, 1, 0);
  if (config.pool == PoolKind::kSpatialSoftmax) {
    CheckWidth(2 * config.pool_channels, "keypoint coordinates");
    out.pos_grid = loader.Floats(weights.pos_grid.data);
    out.out = loader.Dense(weights.out);
  } else {
    CheckWidth(config.pool_channels, "channels before the flatten");
    out.out = loader.Dense(ChannelLast(weights.out, config.pool_channels));
  }
  return out;
}

EncoderLayers::EncoderLayers(const DeviceEncoder& encoder, const EncoderConfig& config,
                             Format format, int frames, int height, int width, DeviceArena& arena)
    : format_(format), frames_(frames) {
  const size_t element = FormatBytes(format);
  const int fold = encoder.space_to_depth ? 2 : 1;
  const Map input = {-1, height / fold, width / fold, encoder.stem.shape.in_c};
  input_ = arena.TakeBytes(element * frames * input.height * input.width * input.channels);
  int h = Halved(height, config.stem_stride), w = Halved(width, config.stem_stride);
  size_t widest = static_cast<size_t>(h) * w * config.stem_channels;
  if (config.stem_max_pool) h = Halved(h, 2), w = Halved(w, 2);
  for (size_t i = 0; i < config.stage_channels.size(); ++i) {
    h = Halved(h, config.stage_strides[i]), w = Halved(w, config.stage_strides[i]);
    widest = std::max(widest, static_cast<size_t>(h) * w * config.stage_channels[i]);
  }
  if (config.pool == PoolKind::kFlatten)  // its convolution's map
    widest = std::max(widest, static_cast<size_t>(h) * w * config.pool_channels);
  for (void*& b : buffers_) b = arena.TakeBytes(frames * widest * element);

  map_ = StemAndBlocks(encoder, config, input);
  if (config.pool == PoolKind::kNone) return;
  features_ = arena.Take<float>(static_cast<size_t>(frames) * config.feature_dim);
  Pool(encoder, config, map_, arena);
}

EncoderLayers::Map EncoderLayers::StemAndBlocks(const DeviceEncoder& encoder,
                                                const EncoderConfig& config, const Map& in) {
  const bool norm = config.group_norm;
  if (norm && !config.stem_max_pool) {
    if (const auto all = InOneLaunch(encoder, true, in)) return *all;
  }
  Map x = Convolve(encoder.stem, in, 0, !norm, nullptr);
  if (config.stem_max_pool) {
    x = PoolStem(encoder.stem_norm, x);
  } else if (norm) {
    Normalise(encoder.stem_norm, x, true, nullptr);
  }
  if (const auto blocks = InOneLaunch(encoder, false, x)) return *blocks;
  for (const DeviceBasicBlock2d& block : encoder.blocks) {
    if (block.downsample && head_.empty()) EndHead();
    x = Block(block, x);
  }
  return x;
}

EncoderLayers::Map EncoderLayers::Convolve(const DeviceConv& conv, const Map& in, int to, bool relu,
                                           const Map* residual) {
  ConvArgs a;
  a.shape = ShapeAt(conv, in.height, in.width);
  a.shape.batch = frames_;
  const Map out = {to, a.shape.out_h, a.shape.out_w, a.shape.out_c};
  a.x = Data(in);
  a.weight = conv.weight;
  a.bias = conv.bias;
  a.residual = residual ? Data(*residual) : nullptr;
  a.relu = relu;
  a.y = Data(out);
  ops_.push_back(a);
  return out;
}

void EncoderLayers::Normalise(const DeviceNorm& norm, const Map& map, bool relu,
                              const Map* residual) {
  GroupNormArgs a;
  a.rows = frames_;
  a.positions = map.height * map.width;
  a.channels = map.channels;
  a.groups = norm.groups;
  a.x = a.y = Data(map);
  a.weight = norm.weight;
  a.bias = norm.bias;
  a.activation = relu ? Activation::kRelu : Activation::kNone;
  a.residual = residual ? Data(*residual) : nullptr;
  a.residual_first = true;
  ops_.push_back(a);
}

EncoderLayers::Map EncoderLayers::ConvolveNormalise(const DeviceConv& conv, const DeviceNorm& norm,
                                                    const Map& in, int to, bool relu,
                                                    const Map* residual) {
  if (norm.groups == 0) return Convolve(conv, in, to, relu, residual);
  const Map out = Convolve(conv, in, to, false, nullptr);
  ConvGroupNormArgs both = {std::get<ConvArgs>(ops_.back()), norm.groups, norm.weight, norm.bias};
  if (!ConvGroupNormSupports(format_, both)) {
    Normalise(norm, out, relu, residual);
    return out;
  }
  both.conv.relu = relu;
  both.conv.residual = residual ? Data(*residual) : nullptr;
  ops_.back() = both;
  return out;
}

EncoderLayers::Map EncoderLayers::PoolStem(const DeviceNorm& norm, const Map& in) {
  const Map out = {1, Halved(in.height, 2), Halved(in.width, 2), in.channels};
  const MaxPoolArgs pool = {frames_,   in.height,   in.width, out.height,
                            out.width, in.channels, Data(in), Data(out)};
  const GroupNormMaxPoolArgs both = {pool, norm.groups, norm.weight, norm.bias};
  if (GroupNormMaxPoolSupports(format_, both)) {
    ops_.push_back(both);
    return out;
  }
  if (norm.groups > 0) {
    Normalise(norm, in, true, nullptr);
  } else if (const auto& conv = std::get<ConvArgs>(ops_.back());
             StemMaxPoolSupports(format_, conv)) {
    ops_.back() = StemMaxPoolArgs{conv, out.height, out.width, Data(out)};
    return out;
  }
  ops_.push_back(pool);
  return out;
}

std::optional<EncoderLayers::Map> EncoderLayers::InOneLaunch(const DeviceEncoder& encoder,
                                                             bool stem, const Map& in) {
  const auto sized = SizedEncoder(encoder, stem, in.height, in.width);
  auto args = encoder_kernel::PlanHere(format_, sized, frames_);
  if (!args) return std::nullopt;
  const ConvShape& last = sized.blocks.back().second.shape;
  const Map out = {(in.buffer + 1) % 4, last.out_h, last.out_w, last.out_c};
  args->x = Data(in);
  args->y = Data(out);
  ops_.push_back(*args);
  return out;
}

EncoderLayers::Map EncoderLayers::Block(const DeviceBasicBlock2d& block, const Map& in) {
  const int hidden = (in.buffer + 1) % 4, out = (in.buffer + 2) % 4, skip = (in.buffer + 3) % 4;
  Map residual = in;
  if (block.downsample)
    residual =
        ConvolveNormalise(*block.downsample, block.downsample_norm, in, skip, false, nullptr);
  const Map h = ConvolveNormalise(block.conv1, block.norm1, in, hidden, true, nullptr);
  return ConvolveNormalise(block.conv2, block.norm2, h, out, true, &residual);
}

void EncoderLayers::Pool(const DeviceEncoder& encoder, const EncoderConfig& config, const Map& map,
                         DeviceArena& arena) {
  const int cells = map.height * map.width;
  if (config.pool == PoolKind::kAverage) {
    if (auto* all = std::get_if<encoder_kernel::Args>(&ops_.back());
        all != nullptr && CanAverage(*all)) {
      all->features = features_;
      return;
    }
    ops_.push_back(AveragePoolOp{Data(map), frames_, cells, map.channels, features_});
    return;
  }
  const bool softmax = config.pool == PoolKind::kSpatialSoftmax;
  const size_t before = ops_.size();
  const Map pooled = Convolve(*encoder.pool_conv, map, (map.buffer + 1) % 4, !softmax, nullptr);
  const ConvArgs pool = std::get<ConvArgs>(ops_.back());
  const void* flat = Data(pooled);
  if (softmax) {
    float* logits = arena.Take<float>(size_t{1} * frames_ * cells * config.pool_channels);
    ConvArgs& conv = std::get<ConvArgs>(ops_.back());
    conv.y = logits;
    conv.y_fp32 = true;
    void* keypoints =
        arena.TakeBytes(size_t{2} * frames_ * config.pool_channels * FormatBytes(format_));
    ops_.push_back(SpatialSoftmaxOp{logits, encoder.pos_grid, frames_, cells, config.pool_channels,
                                    keypoints});
    flat = keypoints;
  }
  ConvArgs dense;
  dense.shape = encoder.out->shape;
  dense.shape.batch = frames_;
  dense.x = flat;
  dense.weight = encoder.out->weight;
  dense.bias = encoder.out->bias;
  dense.relu = config.feature_relu;
  dense.y = features_;
  dense.y_fp32 = true;
  const FeatureHeadArgs all = {pool, softmax ? encoder.pos_grid : nullptr, dense};
  if (FeatureHeadSupports(format_, all)) {
    ops_.resize(before);
    ops_.push_back(all);
  } else {
    ops_.push_back(dense);
  }
}

void EncoderLayers::EndHead() {
  for (const Op& op : ops_) {
    if (const auto* conv = std::get_if<ConvArgs>(&op)) {
      head_.emplace_back(*conv);
    } else if (const auto* stem = std::get_if<StemMaxPoolArgs>(&op)) {
      head_.emplace_back(*stem);
    } else {
      return head_.clear();
    }
  }
}

void EncoderLayers::Run(cudaStream_t stream) const {
  for (const Op& op : ops_) LaunchOp(format_, op, stream);
}

void EncoderLayers::RunHead(int first, int count, cudaStream_t stream) const {
  for (const MapOp& op : head_) {
    std::visit([&](const auto& args) { LaunchOp(format_, OfPictures(args, first, count), stream); },
               op);
  }
}

void EncoderLayers::RunRest(cudaStream_t stream) const {
  for (size_t i = head_.size(); i < ops_.size(); ++i) LaunchOp(format_, ops_[i], stream);
}

ConvArgs EncoderLayers::OfPictures(ConvArgs a, int first, int count) const {
  ConvShape& s = a.shape;
  const auto from = [&](const void* maps, int height, int width, int channels) {
    const size_t map = FormatBytes(format_) * height * width * channels;
    return maps == nullptr ? nullptr : static_cast<const uint8_t*>(maps) + map * first;
  };
  s.batch = count;
  a.x = from(a.x, s.in_h, s.in_w, s.in_c);
  a.residual = from(a.residual, s.out_h, s.out_w, s.out_c);
  a.y = const_cast<uint8_t*>(from(a.y, s.out_h, s.out_w, s.out_c));
  return a;
}

StemMaxPoolArgs EncoderLayers::OfPictures(StemMaxPoolArgs a, int first, int count) const {
  const size_t map =
      FormatBytes(format_) * a.pooled_h * a.pooled_w * size_t{1} * a.conv.shape.out_c;
  a.conv = OfPictures(a.conv, first, count);
  a.y = static_cast<uint8_t*>(a.y) + map * first;
  return a;
}

}  // namespace mjp
