#include "policy/cuda/dit/dit_pass.h"

#include <utility>

namespace mjp {
namespace {

constexpr float kEpsilon = 1e-6f;
// Terms of a block: of the attention, then of the MLP.
constexpr int kShift = 0, kGate = 2, kTerms = 3, kBlockTerms = 6;
constexpr int kNone = -1;

}  // namespace

bool DitSharesLaunches(const DitConfig& config, Format format, int sequences) {
  constexpr int kFewSequences = 4;  // beyond, what blocks do alike costs more than launches
  NormLinearArgs norm;
  norm.rows = config.horizon;
  norm.in = config.hidden;
  return sequences <= kFewSequences && NormLinearSupports(format, norm);
}

DitPass::DitPass(const DeviceDit& weights, const DitConfig& config, Format format, int rows,
                 const FilmConditioning& conditioning, DeviceArena& arena)
    : weights_(weights),
      config_(config),
      format_(format),
      rows_(rows * config.horizon),
      conditioning_(conditioning),
      launches_(format) {
  const size_t size = size_t{1} * rows_ * config.hidden, element = FormatBytes(format);
  input_ = arena.TakeBytes(size_t{1} * rows_ * input_pitch() * element);
  y_ = arena.TakeBytes(size * element);
  qkv_ = arena.TakeBytes(3 * size * element);
  heads_ = arena.TakeBytes(size * element);
  branch_ = arena.TakeBytes(size * element);
  hidden_ = arena.TakeBytes(4 * size * element);
  x_ = arena.Take<float>(size);
  other_x_ = arena.Take<float>(size);
  output_ = arena.Take<float>(size_t{1} * rows_ * config.action_dim);
  launches_.Linear(weights.input, input_, rows_, x_, TokenActivation::kNone, true,
                   weights.input_bias, config.horizon);
  short_ = DitSharesLaunches(config, format, rows);
  for (size_t i = 0; i < weights.blocks.size(); ++i) Block(weights.blocks[i], static_cast<int>(i));
  End(static_cast<int>(weights.blocks.size()) * kBlockTerms - kTerms + kGate);
}

void DitPass::End(int gate) {
  if (short_) {
    NormLinearArgs a = NormLinear(gate, kNone, weights_.output, output_);
    a.y_fp32 = true;
    return launches_.Add(a);
  }
  AddNorm(gate, kNone);
  launches_.Linear(weights_.output, y_, rows_, output_, TokenActivation::kNone, true);
}

void DitPass::AddNorm(int gate, int shift) {
  TokenNormArgs norm = Norm(gate, shift);
  norm.y = y_;
  launches_.Add(norm);
}

TokenNormArgs DitPass::Norm(int gate, int shift) const {
  const FilmTables tables = conditioning_.Tables();
  TokenNormArgs a;
  a.rows = rows_;
  a.width = config_.hidden;
  a.x = x_;
  a.epsilon = kEpsilon;
  a.terms.of_condition = tables.cond;
  a.terms.of_time = tables.step_table;
  a.terms.pitch = tables.width;
  a.terms.rows_per_sequence = config_.horizon;
  a.terms.sequences_per_condition = tables.rows_per_env;
  if (gate != kNone) {
    a.branch = branch_;
    a.terms.gate = gate * config_.hidden;
  }
  a.normalize = shift != kNone;
  if (a.normalize) {
    a.terms.shift = shift * config_.hidden;
    a.terms.scale = (shift + 1) * config_.hidden;
    if (gate != kNone) a.sum = x_;
  }
  return a;
}

void DitPass::Attend(bool rotary) {
  const int width = config_.hidden, pitch = 3 * width, horizon = config_.horizon;
  TokenAttentionArgs a;
  a.sequences = rows_ / horizon;
  a.heads = config_.heads;
  a.head_size = width / config_.heads;
  a.queries = a.keys = horizon;
  const auto part = [&](int column) {
    return DeviceRows{static_cast<const uint8_t*>(qkv_) + column * FormatBytes(format_), pitch,
                      int64_t{pitch} * horizon};
  };
  a.q = part(0), a.k = part(width), a.v = part(2 * width);
  if (rotary) a.cosines = weights_.cosines, a.sines = weights_.sines;
  a.out = heads_;
  launches_.Add(a);
}

void DitPass::Block(const DeviceDitBlock& block, int index) {
  const int first = index * kBlockTerms;
  const int before = index == 0 ? kNone : first - kTerms + kGate;
  const auto activation = TokenActivation::kGeluTanh;
  if (short_) {
    NormLinearArgs qkv = NormLinear(before, first + kShift, block.qkv_pairs, qkv_);
    qkv.cosines = weights_.cosines, qkv.sines = weights_.sines;
    qkv.rotary_columns = 2 * config_.hidden;
    qkv.rotary_head = config_.hidden / config_.heads;
    launches_.Add(qkv);
  } else {
    AddNorm(before, first + kShift);
    launches_.Linear(block.qkv, y_, rows_, qkv_);
  }
  Attend(!short_);
  launches_.Linear(block.out, heads_, rows_, branch_);
  const int gate = first + kGate, shift = first + kTerms + kShift;
  if (short_) {
    NormLinearArgs mlp = NormLinear(gate, shift, block.mlp1, hidden_);
    mlp.activation = activation;
    launches_.Add(mlp);
  } else {
    AddNorm(gate, shift);
    launches_.Linear(block.mlp1, y_, rows_, hidden_, activation);
  }
  launches_.Linear(block.mlp2, hidden_, rows_, branch_);
}

NormLinearArgs DitPass::NormLinear(int gate, int shift, const DeviceConv& layer, void* y) {
  NormLinearArgs a;
  a.rows = config_.horizon;
  a.sequences = rows_ / config_.horizon;
  a.in = layer.shape.in_c;
  a.out = layer.shape.out_c;
  a.norm = Norm(gate, shift);
  // every block of the launch reads x, so that none may write it
  if (a.norm.sum != nullptr) {
    a.norm.sum = other_x_;
    std::swap(x_, other_x_);
  }
  a.weight = layer.weight;
  a.bias = layer.bias;
  a.y = y;
  return a;
}

}  // namespace mjp
