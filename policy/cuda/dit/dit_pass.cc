#include "policy/cuda/dit/dit_pass.h"

namespace mjp {
namespace {

constexpr float kEpsilon = 1e-6f;
// Terms of a block: of the attention, then of the MLP.
constexpr int kShift = 0, kGate = 2, kTerms = 3, kBlockTerms = 6;
constexpr int kNone = -1;

}  // namespace

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
  output_ = arena.Take<float>(size_t{1} * rows_ * config.action_dim);
  launches_.Linear(weights.input, input_, rows_, x_, TokenActivation::kNone, true,
                   weights.input_bias, config.horizon);
  for (size_t i = 0; i < weights.blocks.size(); ++i) Block(weights.blocks[i], static_cast<int>(i));
  End(static_cast<int>(weights.blocks.size()) * kBlockTerms - kTerms + kGate);
}

void DitPass::End(int gate) {
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

void DitPass::Attend() {
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
  a.cosines = weights_.cosines, a.sines = weights_.sines;
  a.out = heads_;
  launches_.Add(a);
}

void DitPass::Block(const DeviceDitBlock& block, int index) {
  const int first = index * kBlockTerms;
  const int before = index == 0 ? kNone : first - kTerms + kGate;
  AddNorm(before, first + kShift);
  launches_.Linear(block.qkv, y_, rows_, qkv_);
  Attend();
  launches_.Linear(block.out, heads_, rows_, branch_);
  AddNorm(first + kGate, first + kTerms + kShift);
  launches_.Linear(block.mlp1, y_, rows_, hidden_, TokenActivation::kGeluTanh);
  launches_.Linear(block.mlp2, hidden_, rows_, branch_);
}

}  // namespace mjp
