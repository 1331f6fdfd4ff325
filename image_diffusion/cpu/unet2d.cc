#include "image_diffusion/cpu/unet2d.h"

#include <algorithm>

namespace mjp::cpu {
namespace {

constexpr int kHalo = 1;

OwnedFeatures Maps(int rows, int size, int channels, int halo) {
  return MakeFeatures(rows, size, size, channels, halo, halo);
}

// Copies the maps of `from` into channels first ... of `to`, each pixel `times` times both ways.
void CopyMaps(const Features& from, const Features& to, int first, int times) {
  for (int n = 0; n < from.batch; ++n)
    for (int y = 0; y < to.height; ++y)
      for (int x = 0; x < to.width; ++x)
        std::copy_n(from.At(n, y / times, x / times), from.channels, to.At(n, y, x) + first);
}

}  // namespace

Unet2d::Unet2d(const ImageModel& model, const std::vector<int>& timesteps, int rows,
               ThreadPool& pool)
    : pool_(pool),
      table_(MakeStepTable(model.unet, timesteps)),
      no_condition_(table_.width),
      environment_(rows) {
  const UnetWeights& unet = model.unet;
  const int levels = static_cast<int>(unet.down.size());
  const int halo = std::max(model.config.unet.kernel_size / 2, kHalo);
  int size = model.config.size;
  input_ = Maps(rows, size, model.config.channels, halo);
  for (int i = 0; i < levels; ++i) {
    down_.push_back(MakeLevel(unet.down[i], rows, size, false));
    if (i + 1 < levels) size /= 2;
  }
  mid1_ = MakeBlock(unet.mid1, rows, size);
  mid2_ = MakeBlock(unet.mid2, rows, size);
  for (int i = 0; i < levels; ++i) {
    up_.push_back(MakeLevel(unet.up[i], rows, size, true));
    size *= 2;
  }
  final_conv_ = PackConv2d(unet.final_conv, 1);
  final_norm_ = PackNorm(unet.final_norm);
  out_ = PackConv2d(unet.out, 1);
  last_ = Maps(rows, model.config.size, final_conv_.out, kHalo);
}

Unet2d::BlockLayers Unet2d::MakeBlock(const ResidualBlock1d& block, int rows, int size) {
  BlockLayers layers;
  layers.conv1 = PackConv2d(block.conv1, 1);
  layers.conv2 = PackConv2d(block.conv2, 1);
  layers.norm1 = PackNorm(block.norm1);
  layers.norm2 = PackNorm(block.norm2);
  const int channels = layers.conv1.out, halo = std::max(layers.conv1.pad_h, kHalo);
  layers.middle = Maps(rows, size, channels, halo);
  layers.out = Maps(rows, size, channels, halo);
  if (block.residual) {
    layers.residual = PackConv2d(*block.residual, 1);
    layers.side = Maps(rows, size, channels, 0);
  }
  layers.film = table_.offsets[blocks_++];
  layers.film_scale = block.film.bias.shape[0] == 2 * channels;
  return layers;
}

Unet2d::Level Unet2d::MakeLevel(const UnetLevel& weights, int rows, int size, bool up) {
  Level level{.block1 = MakeBlock(weights.block1, rows, size),
              .block2 = MakeBlock(weights.block2, rows, size)};
  const int halo = level.block1.middle.view.halo_x;
  if (up) level.joined = Maps(rows, size, level.block1.conv1.in, halo);
  if (!weights.resample) return level;
  level.resample = PackConv2d(*weights.resample, up ? 1 : 2);
  if (up) level.doubled = Maps(rows, 2 * size, level.resample->in, halo);
  level.resampled = Maps(rows, up ? 2 * size : size / 2, level.resample->out, halo);
  return level;
}

// Mish(GN(conv2(FiLM(Mish(GN(conv1(x))))))) + (x or its convolution)
Features Unet2d::Run(const BlockLayers& block, const Features& x) {
  const Features middle = WithRows(block.middle), out = WithRows(block.out);
  GroupNormArgs norm1 = NormArgs(block.norm1, middle, Activation::kMish);
  norm1.film = {.step_table = table_.values.data() + block.film,
                .cond = no_condition_.data(),
                .step = step_,
                .row = environment_.data(),
                .pitch = table_.width,
                .bias_offset = block.film_scale ? block.conv1.out : 0};
  GroupNormArgs norm2 = NormArgs(block.norm2, out, Activation::kMish);
  norm2.residual = block.residual ? WithRows(block.side) : x;
  pool_.ForBlocks(rows_, block.conv1.out, Granule(block.conv1, block.norm1), [&](const Block& b) {
    Convolve(block.conv1, x, middle, b);
    Normalize(norm1, b);
  });
  pool_.ForBlocks(rows_, block.conv2.out, Granule(block.conv2, block.norm2), [&](const Block& b) {
    if (block.residual) Convolve(*block.residual, x, norm2.residual, b);
    Convolve(block.conv2, middle, out, b);
    Normalize(norm2, b);
  });
  return out;
}

Features Unet2d::Apply(const ConvLayer& conv, const Features& x, const Features& y) {
  pool_.ForBlocks(rows_, conv.out, PanelChannels(),
                  [&](const Block& b) { Convolve(conv, x, y, b); });
  return y;
}

void Unet2d::Forward(const float* x, const int* step, int rows, float* output) {
  step_ = step;
  rows_ = rows;
  const Features input = WithRows(input_);
  const int size = input.width, channels = input.channels;
  CopyMaps({const_cast<float*>(x), rows, size, size, channels, channels, 0, 0}, input, 0, 1);
  Features h = input;
  for (Level& level : down_) {
    h = Run(level.block2, Run(level.block1, h));
    if (level.resample) h = Apply(*level.resample, h, WithRows(level.resampled));
  }
  h = Run(mid2_, Run(mid1_, h));
  for (size_t i = 0; i < up_.size(); ++i) {
    Level& level = up_[i];
    const Features joined = WithRows(level.joined);
    CopyMaps(h, joined, 0, 1);
    CopyMaps(WithRows(down_[down_.size() - 1 - i].block2.out), joined, h.channels, 1);
    h = Run(level.block2, Run(level.block1, joined));
    if (!level.resample) continue;
    CopyMaps(h, WithRows(level.doubled), 0, 2);
    h = Apply(*level.resample, WithRows(level.doubled), WithRows(level.resampled));
  }
  const Features last = WithRows(last_);
  const GroupNormArgs norm = NormArgs(final_norm_, last, Activation::kMish);
  pool_.ForBlocks(rows, final_conv_.out, Granule(final_conv_, final_norm_), [&](const Block& b) {
    Convolve(final_conv_, h, last, b);
    Normalize(norm, b);
  });
  Apply(out_, last, {output, rows, size, size, channels, channels, 0, 0});
}

}  // namespace mjp::cpu
