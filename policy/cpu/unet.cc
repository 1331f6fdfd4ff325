#include "policy/cpu/unet.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "kernels/cpu/mish.h"
#include "policy/cpu/time_embedding.h"

namespace mjp::cpu {
namespace {

// Collects the FiLM layers of all blocks into one matrix.
class FilmCollector {
 public:
  explicit FilmCollector(int width) : width_(width) {}

  int Add(const Linear& film) {
    const int offset = static_cast<int>(bias_.size());
    weight_.insert(weight_.end(), film.weight.data.begin(), film.weight.data.end());
    bias_.insert(bias_.end(), film.bias.data.begin(), film.bias.data.end());
    return offset;
  }

  int size() const { return static_cast<int>(bias_.size()); }
  ConvLayer Step(int embed) const {
    return MakeLinear(weight_.data(), bias_.data(), size(), embed, width_);
  }
  ConvLayer Cond(int embed) const {
    return MakeLinear(weight_.data() + embed, nullptr, size(), width_ - embed, width_);
  }

 private:
  int width_;
  std::vector<float> weight_, bias_;
};

UnetBlock PackBlock(const ResidualBlock1d& block, FilmCollector& film) {
  UnetBlock packed{PackConv1d(block.conv1, 1),
                   PackConv1d(block.conv2, 1),
                   PackNorm(block.norm1),
                   PackNorm(block.norm2),
                   std::nullopt,
                   film.Add(block.film)};
  if (block.residual) packed.residual = PackConv1d(*block.residual, 1);
  return packed;
}

// The linear layer for rows of x, divided between the threads.
void Linear1(ThreadPool& pool, const ConvLayer& layer, const float* x, int rows, float* y) {
  pool.ForBlocks(1, layer.out, PanelChannels(), [&](const Block& block) {
    LinearRows(layer, x, layer.in, rows, y, layer.out, block.channel_begin, block.channel_end);
  });
}

// FiLM terms of each timestep, with the layers' bias: (timesteps, film_width)
AlignedBuffer StepTable(const PackedUnet& unet, const std::vector<int>& timesteps,
                        ThreadPool& pool) {
  const int count = static_cast<int>(timesteps.size());
  const int embed = unet.time1.in, hidden = unet.time1.out;
  AlignedBuffer sinusoid(size_t{1} * count * embed), inner(size_t{1} * count * hidden);
  AlignedBuffer outer(size_t{1} * count * embed), table(size_t{1} * count * unet.film_width);
  for (int i = 0; i < count; ++i) {
    TimeEmbedding(timesteps[i], embed, sinusoid.data() + int64_t{i} * embed);
  }
  Linear1(pool, unet.time1, sinusoid.data(), count, inner.data());
  Mish(inner.data(), static_cast<int64_t>(inner.size()), inner.data());
  Linear1(pool, unet.time2, inner.data(), count, outer.data());
  Mish(outer.data(), static_cast<int64_t>(outer.size()), outer.data());
  Linear1(pool, unet.film_step, outer.data(), count, table.data());
  return table;
}

}  // namespace

std::shared_ptr<const PackedUnet> PackUnet(const UnetPolicyConfig& config,
                                           const UnetWeights& weights) {
  auto unet = std::make_shared<PackedUnet>();
  FilmCollector film(config.unet.step_embed_dim + config.CondDim());
  unet->time1 = PackLinear(weights.time1);
  unet->time2 = PackLinear(weights.time2);
  const auto pack_level = [&](const UnetLevel& level, bool up) {
    PackedUnet::Level packed{PackBlock(level.block1, film), PackBlock(level.block2, film), {}};
    if (level.resample) {
      packed.resample = up ? PackTransposedConv1d(*level.resample) : PackConv1d(*level.resample, 2);
    }
    return packed;
  };
  for (const UnetLevel& level : weights.down) unet->down.push_back(pack_level(level, false));
  unet->mid1 = PackBlock(weights.mid1, film);
  unet->mid2 = PackBlock(weights.mid2, film);
  for (const UnetLevel& level : weights.up) unet->up.push_back(pack_level(level, true));
  unet->final_conv = PackConv1d(weights.final_conv, 1);
  unet->final_norm = PackNorm(weights.final_norm);
  unet->out = PackConv1d(weights.out, 1);
  unet->film_width = film.size();
  unet->film_scale = config.unet.film_scale;
  unet->film_step = film.Step(config.unet.step_embed_dim);
  unet->film_cond = film.Cond(config.unet.step_embed_dim);
  return unet;
}

Unet::Unet(std::shared_ptr<const PackedUnet> weights, const UnetPolicyConfig& config,
           const std::vector<int>& timesteps, int rows, int environments, ThreadPool& pool)
    : weights_(std::move(weights)),
      pool_(pool),
      action_dim_(config.action_dim),
      cond_dim_(config.CondDim()),
      step_table_(StepTable(*weights_, timesteps, pool)),
      cond_mish_(size_t{1} * environments * cond_dim_),
      film_cond_(size_t{1} * environments * weights_->film_width) {
  const std::vector<int>& dims = config.unet.down_dims;
  const int levels = static_cast<int>(dims.size());
  if (config.horizon % (1 << (levels - 1)) != 0) {
    throw Unsupported("horizon " + std::to_string(config.horizon) + " is not a multiple of 2^" +
                      std::to_string(levels - 1) + ": the U-Net's " + std::to_string(levels) +
                      " levels cannot join their halves");
  }
  const int halo = std::max(config.unet.kernel_size / 2, 1);
  for (int i = 0; i < levels; ++i) {
    const int length = config.horizon >> i;
    const auto maps = [&](int channels) {
      return MakeFeatures(rows, 1, length, channels, 0, halo);
    };
    input_.push_back(maps(i == 0 ? action_dim_ : dims[i - 1]));
    middle_.push_back(maps(dims[i]));
    first_.push_back(maps(dims[i]));
    side_.push_back(maps(dims[i]));
    joined_.push_back(maps(2 * dims[i]));
    const int up = dims[std::max(i - 1, 0)];
    up_middle_.push_back(maps(up));
    up_first_.push_back(maps(up));
    up_side_.push_back(maps(up));
  }
  final_input_ = MakeFeatures(rows, 1, config.horizon, dims[0], 0, halo);
}

void Unet::SetConditioning(std::span<const float> cond, int count) {
  Mish(cond.data(), int64_t{count} * cond_dim_, cond_mish_.data());
  Linear1(pool_, weights_->film_cond, cond_mish_.data(), count, film_cond_.data());
}

FilmArgs Unet::Film(const UnetBlock& block) const {
  return {.step_table = step_table_.data() + block.film,
          .cond = film_cond_.data() + block.film,
          .step = step_,
          .row = environment_,
          .pitch = weights_->film_width,
          .bias_offset = weights_->film_scale ? block.conv1.out : 0};
}

// y = Mish(GN(conv2(FiLM(Mish(GN(conv1(x))))))) + (x or its convolution)
void Unet::Block1d(const UnetBlock& block, const Features& x, const Features& middle,
                   const Features& residual, const Features& y) {
  GroupNormArgs norm1 = NormArgs(block.norm1, middle, Activation::kMish);
  norm1.film = Film(block);
  GroupNormArgs norm2 = NormArgs(block.norm2, y, Activation::kMish);
  norm2.residual = block.residual ? residual : x;
  pool_.ForBlocks(rows_, block.conv1.out, Granule(block.conv1, block.norm1), [&](const Block& b) {
    Convolve(block.conv1, x, middle, b);
    Normalize(norm1, b);
  });
  pool_.ForBlocks(rows_, block.conv2.out, Granule(block.conv2, block.norm2), [&](const Block& b) {
    if (block.residual) Convolve(*block.residual, x, residual, b);
    Convolve(block.conv2, middle, y, b);
    Normalize(norm2, b);
  });
}

void Unet::Resample(const ConvLayer& layer, const Features& x, const Features& y) {
  pool_.ForBlocks(rows_, layer.out, PanelChannels(),
                  [&](const Block& b) { Convolve(layer, x, y, b); });
}

void Unet::Forward(const float* x, const int* step, const int* environment, int rows,
                   float* output) {
  const PackedUnet& unet = *weights_;
  const int levels = static_cast<int>(unet.down.size());
  step_ = step;
  environment_ = environment;
  rows_ = rows;
  const auto maps = [&](const OwnedFeatures& f) { return WithBatch(f.view, rows); };
  // halves of the concatenation [x, skip] of a level
  const auto left = [&](int i) { return maps(joined_[i]).Slice(0, joined_[i].view.channels / 2); };
  const auto skip = [&](int i) {
    const int half = joined_[i].view.channels / 2;
    return maps(joined_[i]).Slice(half, half);
  };

  const Features first = maps(input_[0]);
  const int64_t row = int64_t{first.width} * action_dim_;
  for (int r = 0; r < rows; ++r) std::copy_n(x + r * row, row, first.At(r, 0, 0));
  for (int i = 0; i < levels; ++i) {
    const PackedUnet::Level& level = unet.down[i];
    Block1d(level.block1, maps(input_[i]), maps(middle_[i]), maps(side_[i]), maps(first_[i]));
    Block1d(level.block2, maps(first_[i]), maps(middle_[i]), maps(side_[i]), skip(i));
    if (level.resample) Resample(*level.resample, skip(i), maps(input_[i + 1]));
  }
  const int last = levels - 1;
  Block1d(unet.mid1, skip(last), maps(middle_[last]), maps(side_[last]), maps(first_[last]));
  Block1d(unet.mid2, maps(first_[last]), maps(middle_[last]), maps(side_[last]),
          levels > 1 ? left(last) : maps(final_input_));
  for (int i = last; i > 0; --i) {
    const PackedUnet::Level& level = unet.up[last - i];
    const Features middle = maps(up_middle_[i]), side = maps(up_side_[i]);
    Block1d(level.block1, maps(joined_[i]), middle, side, maps(up_first_[i]));
    Block1d(level.block2, maps(up_first_[i]), middle, side, side);
    Resample(*level.resample, side, i > 1 ? left(i - 1) : maps(final_input_));
  }
  const Features inner = maps(middle_[0]);
  const Features out{output, rows, 1, first.width, action_dim_, action_dim_, 0, 0};
  const GroupNormArgs norm = NormArgs(unet.final_norm, inner, Activation::kMish);
  pool_.ForBlocks(rows, unet.final_conv.out, Granule(unet.final_conv, unet.final_norm),
                  [&](const Block& b) {
                    Convolve(unet.final_conv, maps(final_input_), inner, b);
                    Normalize(norm, b);
                  });
  Resample(unet.out, inner, out);
}

}  // namespace mjp::cpu
