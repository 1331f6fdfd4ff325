#include "policy/cpu/encoder.h"

#include <algorithm>

#include "kernels/cpu/pool.h"

namespace mjp::cpu {
namespace {

// The Linear after a flatten of (channels, cells), for maps that lie as (cells, channels).
Linear ForChannelLast(const Linear& linear, int channels) {
  Linear last = linear;
  const int64_t in = linear.weight.shape[1], cells = in / channels;
  for (int64_t o = 0; o < linear.weight.shape[0]; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      last.weight.data[o * in + i % cells * channels + i / cells] = linear.weight.data[o * in + i];
    }
  }
  return last;
}

// A convolution's output maps for input maps `x`.
OwnedFeatures OutputOf(const ConvLayer& conv, const Features& x, int halo) {
  return MakeFeatures(x.batch, conv.OutputSize(x.height, conv.kernel_h, conv.pad_h),
                      conv.OutputSize(x.width, conv.kernel_w, conv.pad_w), conv.out, halo, halo);
}

// `conv` (3x3, stride 1) in Winograd's form; what is left of `layer` is its shape.
WinogradLayer MoveToWinograd(const Conv& conv, ConvLayer& layer) {
  layer.weights[0] = {};
  return MakeWinograd(conv.weight.data.data(), conv.bias.data.data(), layer.out, layer.in);
}

}  // namespace

std::shared_ptr<const PackedEncoder> PackEncoder(const EncoderConfig& config,
                                                 const EncoderWeights& weights, Conv3x3 form) {
  auto encoder = std::make_shared<PackedEncoder>();
  encoder->stem = PackConv2d(weights.stem, config.stem_stride);
  encoder->stem_norm = PackNorm(weights.stem_norm);
  for (const BasicBlock2d& block : weights.blocks) {
    PackedEncoder::Block packed{PackConv2d(block.conv1, block.stride),
                                PackConv2d(block.conv2, 1),
                                PackNorm(block.norm1),
                                PackNorm(block.norm2),
                                std::nullopt,
                                {},
                                std::nullopt,
                                std::nullopt};
    if (block.downsample) {
      packed.downsample = PackConv2d(*block.downsample, block.stride);
      packed.downsample_norm = PackNorm(block.downsample_norm);
    }
    if (form == Conv3x3::kWinograd) {
      if (block.stride == 1) packed.winograd1 = MoveToWinograd(block.conv1, packed.conv1);
      packed.winograd2 = MoveToWinograd(block.conv2, packed.conv2);
    }
    encoder->blocks.push_back(std::move(packed));
  }
  if (config.pool == PoolKind::kAverage || config.pool == PoolKind::kNone) return encoder;
  encoder->pool_conv = PackConv2d(weights.pool_conv, 1);
  encoder->out = PackLinear(config.pool == PoolKind::kFlatten
                                ? ForChannelLast(weights.out, config.pool_channels)
                                : weights.out);
  encoder->pos_grid = AlignedBuffer(weights.pos_grid.data.size());
  std::copy(weights.pos_grid.data.begin(), weights.pos_grid.data.end(), encoder->pos_grid.data());
  return encoder;
}

Encoder::Encoder(std::shared_ptr<const PackedEncoder> weights, const EncoderConfig& config,
                 const CameraFeature& camera, const FeatureStats& stats, int frames,
                 ThreadPool& pool)
    : weights_(std::move(weights)),
      config_(config),
      pool_(pool),
      pictures_(camera, stats,
                {config.resize_height, config.resize_width, config.crop_height, config.crop_width},
                frames, weights_->stem.pad_h, pool) {
  stem_ = OutputOf(weights_->stem, input(), 1);
  const Features& stem = stem_.view;
  if (config.stem_max_pool) {
    pooled_stem_ = MakeFeatures(frames, (stem.height - 1) / 2 + 1, (stem.width - 1) / 2 + 1,
                                stem.channels, 1, 1);
  }
  Features map = config.stem_max_pool ? pooled_stem_.view : stem;
  outputs_.push_back(map);
  for (const PackedEncoder::Block& block : weights_->blocks) {
    stages_.push_back({OutputOf(block.conv1, map, 1), OutputOf(block.conv1, map, 1),
                       OutputOf(block.conv1, map, 1)});
    map = stages_.back().output.view;
    outputs_.push_back(map);
    for (const auto& layer : {&block.winograd1, &block.winograd2})
      if (*layer) scratch_size_ = std::max(scratch_size_, WinogradScratch(**layer));
  }
  scratch_ = AlignedBuffer(scratch_size_ * pool.threads());
  if (!weights_->pool_conv) return;
  logits_ = OutputOf(*weights_->pool_conv, map, 0);
  pooled_ = AlignedBuffer(size_t{1} * frames * weights_->out->in);
}

void Encoder::Prepare(const uint8_t* rgb, int64_t frame_stride, int count) {
  pictures_.Prepare(rgb, frame_stride, count);
}

void Encoder::ConvNorm(const ConvLayer& conv, const NormLayer& norm, const Features& x,
                       const Features& y, Activation activation) {
  const GroupNormArgs args = NormArgs(norm, y, activation);
  pool_.ForBlocks(count_, conv.out, Granule(conv, norm), [&](const Block& b) {
    Convolve(conv, x, y, b);
    if (args.groups > 0 || activation != Activation::kNone) Normalize(args, b);
  });
}

void Encoder::Winograd(const WinogradLayer& layer, const Features& x, const Features& y,
                       const Features& residual) {
  const WinogradArgs args{.layer = &layer, .x = x, .y = y, .residual = residual, .relu = true};
  pool_.Run([&](int thread) {
    WinogradConvolve(args, BlockOfThread(args, count_, thread, pool_.threads()),
                     scratch_.data() + thread * scratch_size_);
  });
}

void Encoder::BasicBlock(const PackedEncoder::Block& block, const Features& x, Stage& stage) {
  const Features &middle = stage.middle.view, &side = stage.side.view, &y = stage.output.view;
  if (block.winograd1) {
    Winograd(*block.winograd1, x, middle, {});
  } else {
    ConvNorm(block.conv1, block.norm1, x, middle, Activation::kRelu);
  }
  if (block.winograd2) {
    if (block.downsample) {
      pool_.ForBlocks(count_, side.channels, PanelChannels(),
                      [&](const Block& b) { Convolve(*block.downsample, x, side, b); });
    }
    return Winograd(*block.winograd2, middle, y, block.downsample ? side : x);
  }
  GroupNormArgs args = NormArgs(block.norm2, y, Activation::kRelu);
  args.residual = block.downsample ? side : x;
  args.residual_first = true;
  pool_.ForBlocks(count_, block.conv2.out, Granule(block.conv2, block.norm2), [&](const Block& b) {
    if (block.downsample) {
      Convolve(*block.downsample, x, side, b);
      if (block.downsample_norm.groups > 0) {
        Normalize(NormArgs(block.downsample_norm, side, Activation::kNone), b);
      }
    }
    Convolve(block.conv2, middle, y, b);
    Normalize(args, b);
  });
}

void Encoder::Pool(const Features& map, int count, float* features) {
  if (config_.pool == PoolKind::kNone) return;
  if (config_.pool == PoolKind::kAverage) return AveragePool(map, features, 0, count);
  const Features& logits = logits_.view;
  const ConvLayer& out = *weights_->out;
  Convolve(*weights_->pool_conv, map, logits, {0, count, 0, logits.channels});
  if (config_.pool == PoolKind::kSpatialSoftmax) {
    SpatialSoftmax(logits, weights_->pos_grid.data(), pooled_.data(), 0, count);
  } else {
    const int64_t size = logits.BatchStride() * count;
    for (int64_t i = 0; i < size; ++i) pooled_[i] = std::max(logits.data[i], 0.0f);
  }
  LinearRows(out, pooled_.data(), out.in, count, features, out.out, 0, out.out);
  if (!config_.feature_relu) return;
  for (int64_t i = 0; i < int64_t{count} * out.out; ++i) features[i] = std::max(features[i], 0.0f);
}

void Encoder::Encode(int count, float* features) {
  count_ = count;
  // the largest of a window is found before or after ReLU alike
  const bool late = config_.stem_max_pool && weights_->stem_norm.groups == 0;
  ConvNorm(weights_->stem, weights_->stem_norm, input(), stem_.view,
           late ? Activation::kNone : Activation::kRelu);
  if (config_.stem_max_pool) {
    pool_.Run([&](int part) {
      const int rows = count * pooled_stem_.view.height, parts = pool_.threads();
      MaxPool(stem_.view, pooled_stem_.view, late, rows * part / parts, rows * (part + 1) / parts);
    });
  }
  for (size_t i = 0; i < weights_->blocks.size(); ++i) {
    BasicBlock(weights_->blocks[i], outputs_[i], stages_[i]);
  }
  Pool(outputs_.back(), count, features);
}

}  // namespace mjp::cpu
