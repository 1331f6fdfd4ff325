#include "policy/dit/trunk.h"

#include <algorithm>

#include "kernels/cpu/transformer/activate.h"
#include "policy/cpu/time_embedding.h"

namespace mjp::cpu {
namespace {

constexpr TokenActivation kNone = TokenActivation::kNone;
constexpr float kEpsilon = 1e-6f;
constexpr int kShift = 0, kScale = 1, kGate = 2, kTerms = 3;  // of attention, then of the MLP

// (times, E): sinusoid - Linear - GELU - Linear - GELU
AlignedBuffer TimeFeatures(const PackedTrunk& weights, const std::vector<double>& times,
                           ThreadPool& pool) {
  const int count = static_cast<int>(times.size()), embed = weights.time1.in;
  const int inner = weights.time1.out;
  AlignedBuffer features(size_t{1} * count * embed), middle(size_t{1} * count * inner);
  for (int i = 0; i < count; ++i) {
    TimeEmbedding(times[i], embed, features.data() + int64_t{i} * embed);
  }
  LinearTokens(pool, weights.time1, features.data(), embed, count, TokenActivation::kGeluErf,
               middle.data(), inner);
  LinearTokens(pool, weights.time2, middle.data(), inner, count, TokenActivation::kGeluErf,
               features.data(), embed);
  return features;
}

}  // namespace

PackedTrunk PackTrunk(const DitConfig& config, const DitWeights& weights) {
  PackedTrunk trunk;
  trunk.time1 = PackLinear(weights.time1);
  trunk.time2 = PackLinear(weights.time2);
  trunk.input = PackLinear(weights.input);
  trunk.output = PackLinear(weights.output);
  trunk.position = AlignedBuffer(weights.position.data.size());
  std::copy(weights.position.data.begin(), weights.position.data.end(), trunk.position.data());
  if (config.rope) {
    trunk.rotary = MakeRotaryTable(config.horizon, config.hidden / config.heads, config.rope_base);
  }
  const int embed = config.time_embed, cond = config.CondDim(), pitch = embed + cond;
  for (const DitBlock& block : weights.blocks) {
    const float* modulation = block.modulation.weight.data.data();
    const int out = 6 * config.hidden;
    trunk.blocks.push_back(
        {MakeLinear(modulation, block.modulation.bias.data.data(), out, embed, pitch),
         MakeLinear(modulation + embed, nullptr, out, cond, pitch), PackLinear(block.qkv),
         PackLinear(block.out), PackLinear(block.mlp1), PackLinear(block.mlp2)});
  }
  return trunk;
}

Trunk::Trunk(const PackedTrunk& weights, const DitConfig& config, const std::vector<double>& times,
             int rows, int environments, ThreadPool& pool)
    : weights_(weights),
      pool_(pool),
      horizon_(config.horizon),
      action_dim_(config.action_dim),
      width_(config.hidden),
      heads_(config.heads),
      cond_dim_(config.CondDim()),
      time_features_(TimeFeatures(weights, times, pool)),
      cond_silu_(size_t{1} * environments * cond_dim_),
      modulation_(size_t{6} * rows * width_) {
  const int count = static_cast<int>(times.size()), embed = config.time_embed;
  AlignedBuffer silu(time_features_.size());
  Activate(TokenActivation::kSilu, time_features_.data(), static_cast<int64_t>(silu.size()),
           silu.data());
  for (const PackedTrunk::Block& block : weights.blocks) {
    AlignedBuffer terms(size_t{6} * count * width_);
    LinearTokens(pool, block.of_time, silu.data(), embed, count, kNone, terms.data(), 6 * width_);
    time_terms_.push_back(std::move(terms));
    cond_terms_.emplace_back(size_t{6} * environments * width_);
  }
  const size_t size = size_t{1} * rows * horizon_ * width_;
  x_ = AlignedBuffer(size);
  norm_ = AlignedBuffer(size);
  qkv_ = AlignedBuffer(3 * size);
  heads_out_ = AlignedBuffer(size);
  out_ = AlignedBuffer(size);
  mlp_ = AlignedBuffer(4 * size);
  AttentionArgs args{.heads = heads_, .head_size = width_ / heads_};
  args.queries = args.keys = horizon_;
  scratch_ = MakeAttentionScratch(pool, args);
}

void Trunk::SetConditioning(std::span<const float> cond, int count) {
  Activate(TokenActivation::kSilu, cond.data(), int64_t{count} * cond_dim_, cond_silu_.data());
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    LinearTokens(pool_, weights_.blocks[i].of_cond, cond_silu_.data(), cond_dim_, count, kNone,
                 cond_terms_[i].data(), 6 * width_);
  }
}

void Trunk::Modulate(size_t i, const int* time, const int* environment, int rows) {
  const int64_t terms = int64_t{6} * width_;
  pool_.ForBlocks(rows, 1, 1, [&](const Block& b) {
    for (int r = b.batch_begin; r < b.batch_end; ++r) {
      const float* of_time = time_terms_[i].data() + time[r] * terms;
      const float* of_cond = cond_terms_[i].data() + environment[r] * terms;
      float* out = modulation_.data() + r * terms;
      for (int64_t c = 0; c < terms; ++c) out[c] = of_time[c] + of_cond[c];
    }
  });
}

void Trunk::ModulatedNorm(int first_term, int rows) {
  LayerNormArgs args{.x = x_.data(), .x_pitch = width_, .y = norm_.data(), .y_pitch = width_};
  args.width = width_;
  args.epsilon = kEpsilon;
  args.shift = modulation_.data() + int64_t{first_term + kShift} * width_;
  args.scale = modulation_.data() + int64_t{first_term + kScale} * width_;
  args.modulation_pitch = int64_t{6} * width_;
  args.rows_per_sequence = horizon_;
  NormTokens(pool_, args, rows * horizon_);
}

void Trunk::AddGated(int gate_term, int rows) {
  ResidualArgs args{.y = x_.data(), .y_pitch = width_, .x = out_.data(), .x_pitch = width_};
  args.width = width_;
  args.gate = modulation_.data() + int64_t{gate_term} * width_;
  args.gate_pitch = int64_t{6} * width_;
  args.rows_per_sequence = horizon_;
  AddTokens(pool_, args, rows * horizon_);
}

void Trunk::Attention(const PackedTrunk::Block& block, int rows) {
  const int tokens = rows * horizon_;
  const int64_t pitch = int64_t{3} * width_, sequence = horizon_ * pitch;
  ModulatedNorm(0, rows);
  LinearTokens(pool_, block.qkv, norm_.data(), width_, tokens, kNone, qkv_.data(), pitch);
  // queries and keys stand next to each other: twice the heads
  if (weights_.rotary) {
    RotateTokens(pool_, *weights_.rotary, 2 * heads_, qkv_.data(), pitch, tokens);
  }
  AttentionArgs args{.sequences = rows, .heads = heads_, .head_size = width_ / heads_};
  args.queries = args.keys = horizon_;
  args.q = {qkv_.data(), pitch, sequence};
  args.k = {qkv_.data() + width_, pitch, sequence};
  args.v = {qkv_.data() + 2 * width_, pitch, sequence};
  args.out = heads_out_.data();
  args.out_pitch = width_;
  args.out_batch = int64_t{horizon_} * width_;
  Attend(pool_, args, scratch_);
  LinearTokens(pool_, block.out, heads_out_.data(), width_, tokens, kNone, out_.data(), width_);
}

void Trunk::Mlp(const PackedTrunk::Block& block, int rows) {
  const int tokens = rows * horizon_;
  ModulatedNorm(kTerms, rows);
  LinearTokens(pool_, block.mlp1, norm_.data(), width_, tokens, TokenActivation::kGeluTanh,
               mlp_.data(), int64_t{4} * width_);
  LinearTokens(pool_, block.mlp2, mlp_.data(), int64_t{4} * width_, tokens, kNone, out_.data(),
               width_);
}

void Trunk::Forward(const float* x, const int* time, const int* environment, int rows,
                    float* output, const Tap& tap) {
  const int tokens = rows * horizon_, embed = weights_.time1.in;
  if (tap) {
    for (int r = 0; r < rows; ++r) {
      tap("time_mlp", time_features_.data() + int64_t{time[r]} * embed, 1, embed);
    }
  }
  LinearTokens(pool_, weights_.input, x, action_dim_, tokens, kNone, x_.data(), width_);
  if (tap) tap("input_proj", x_.data(), tokens, width_);
  for (int r = 0; r < rows && weights_.position.size() > 0; ++r) {
    ResidualArgs add{.y = x_.data() + int64_t{r} * horizon_ * width_, .y_pitch = width_};
    add.x = weights_.position.data();
    add.x_pitch = add.width = width_;
    AddTokens(pool_, add, horizon_);
  }
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    const std::string name = "block" + std::to_string(i);
    Modulate(i, time, environment, rows);
    if (tap) tap(name + "/modulation", modulation_.data(), rows, int64_t{6} * width_);
    Attention(weights_.blocks[i], rows);
    if (tap) tap(name + "/attn", out_.data(), tokens, width_);
    AddGated(kGate, rows);
    Mlp(weights_.blocks[i], rows);
    if (tap) tap(name + "/mlp", out_.data(), tokens, width_);
    AddGated(kTerms + kGate, rows);
    if (tap) tap(name, x_.data(), tokens, width_);
  }
  LinearTokens(pool_, weights_.output, x_.data(), width_, tokens, kNone, output, action_dim_);
}

}  // namespace mjp::cpu
