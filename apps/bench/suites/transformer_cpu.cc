#include "apps/bench/suites/kernels_cpu.h"
#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/transformer/activate.h"
#include "kernels/cpu/transformer/attention.h"
#include "kernels/cpu/transformer/layer_norm.h"
#include "kernels/cpu/transformer/patch_embedding.h"
#include "kernels/cpu/transformer/rotary.h"

namespace mjp::app {
namespace {

using mjp::TokenActivation;
using mjp::cpu::AlignedBuffer;
using mjp::cpu::ConvLayer;

// Numbers in [-1, 1).
AlignedBuffer Numbers(size_t count) {
  AlignedBuffer out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i * 7919 % 2048) / 1024 - 1;
  return out;
}

class TransformerKernels {
 public:
  explicit TransformerKernels(const BenchOptions& options)
      : seconds_(options.seconds / 10), sequences_(options.policy.batch) {}

  BenchRows Run() {
    Attention("attention, 8 heads of 64, 32 tokens", 8, 64, 32, false);
    Attention("attention, 12 heads of 64, 197 tokens", 12, 64, 197, false);
    Attention("attention, 8 heads of 64, 302 tokens", 8, 64, 302, false);
    Attention("attention, 8 heads of 64, 77 tokens, causal", 8, 64, 77, true);
    Linear("linear 512->2048, 32 tokens", 512, 2048, 32);
    Linear("linear 768->3072, 197 tokens", 768, 3072, 197);
    PatchEmbedding();
    Norms();
    Activations();
    return std::move(out_);
  }

 private:
  void Add(const std::string& name, double items, const std::string& unit,
           const std::function<void()>& work) {
    out_.push_back(Measure("kernels", name, seconds_, items, unit, work));
  }

  void Attention(const std::string& name, int heads, int head_size, int tokens, bool causal) {
    const int width = heads * head_size;
    const int64_t size = int64_t{tokens} * 3 * width;
    const AlignedBuffer qkv = Numbers(static_cast<size_t>(size * sequences_));
    AlignedBuffer out(size_t{1} * sequences_ * tokens * width);
    mjp::cpu::AttentionArgs args{
        .sequences = sequences_, .heads = heads, .head_size = head_size, .queries = tokens};
    args.keys = tokens;
    args.q = {qkv.data(), 3 * width, size};
    args.k = {qkv.data() + width, 3 * width, size};
    args.v = {qkv.data() + 2 * width, 3 * width, size};
    args.out = out.data();
    args.out_pitch = width;
    args.out_batch = int64_t{tokens} * width;
    args.causal = causal;
    AlignedBuffer scratch(AttentionScratch(args));
    Add(name, 4e-9 * sequences_ * width * tokens * tokens, "GFLOP",
        [&] { mjp::cpu::Attention(args, 0, args.Parts(), scratch.data()); });
  }

  void Linear(const std::string& name, int in, int out, int tokens) {
    const AlignedBuffer weights = Numbers(size_t{1} * in * out);
    const int rows = sequences_ * tokens;
    const AlignedBuffer x = Numbers(size_t{1} * rows * in);
    const ConvLayer layer = mjp::cpu::MakeLinear(weights.data(), weights.data(), out, in, in);
    AlignedBuffer y(size_t{1} * rows * out);
    Add(name, 2e-9 * rows * in * out, "GFLOP",
        [&] { LinearRows(layer, x.data(), in, rows, y.data(), out, 0, out); });
  }

  void PatchEmbedding() {
    constexpr int kSize = 224, kPatch = 16, kWidth = 768, kTokens = 196;
    const AlignedBuffer weights = Numbers(size_t{kWidth} * 3 * kPatch * kPatch);
    AlignedBuffer pixels = Numbers(size_t{1} * sequences_ * kSize * kSize * 3);
    AlignedBuffer tokens(size_t{kTokens} * kWidth);
    const mjp::cpu::Features x{.data = pixels.data(),
                               .batch = sequences_,
                               .height = kSize,
                               .width = kSize,
                               .channels = 3,
                               .pitch = 3};
    const ConvLayer layer =
        mjp::cpu::MakePatchEmbedding(weights.data(), nullptr, kWidth, 3, kPatch);
    Add("patch embedding 16 of 224x224 to 768", sequences_, "frames", [&] {
      for (int n = 0; n < sequences_; ++n) {
        EmbedPatches(layer, x, n, tokens.data(), kWidth, 0, kWidth);
      }
    });
  }

  void Norms() {
    constexpr int kWidth = 512, kTokens = 32, kHeads = 8;
    const int rows = sequences_ * kTokens;
    const double elements = 1e-6 * rows * kWidth;
    const AlignedBuffer x = Numbers(size_t{1} * rows * kWidth), terms = Numbers(kWidth);
    const AlignedBuffer modulation = Numbers(size_t{1} * sequences_ * kWidth);
    AlignedBuffer y(x.size());
    mjp::cpu::LayerNormArgs args{.x = x.data(), .x_pitch = kWidth, .y = y.data()};
    args.y_pitch = args.width = args.modulation_pitch = kWidth;
    args.rows_per_sequence = kTokens;
    args.weight = args.bias = terms.data();
    Add("LayerNorm, 512", elements, "M elements", [&] { LayerNorm(args, 0, rows); });
    args.weight = args.bias = nullptr;
    args.scale = args.shift = modulation.data();
    Add("LayerNorm, 512, modulated", elements, "M elements", [&] { LayerNorm(args, 0, rows); });
    mjp::cpu::ResidualArgs residual{.y = y.data(), .y_pitch = kWidth, .x = x.data()};
    residual.x_pitch = residual.width = residual.gate_pitch = kWidth;
    residual.gate = modulation.data();
    residual.rows_per_sequence = kTokens;
    Add("gated residual, 512", elements, "M elements", [&] { AddResidual(residual, 0, rows); });
    const auto table = mjp::cpu::MakeRotaryTable(kTokens, kWidth / kHeads, 10000.0);
    Add("rotary embedding, 8 heads of 64", elements, "M elements",
        [&] { ApplyRotary(table, kHeads, y.data(), kWidth, 0, rows); });
  }

  void Activations() {
    const AlignedBuffer x = Numbers(size_t{32} * 2048 * sequences_);
    AlignedBuffer y(x.size());
    const auto size = static_cast<int64_t>(x.size());
    const std::pair<const char*, TokenActivation> kinds[] = {
        {"GELU, erf", TokenActivation::kGeluErf},
        {"GELU, tanh", TokenActivation::kGeluTanh},
        {"GELU, quick", TokenActivation::kQuickGelu},
        {"SiLU", TokenActivation::kSilu}};
    for (const auto& [name, activation] : kinds) {
      Add(std::string(name) + ", 2048 at 32", 1e-6 * static_cast<double>(size), "M elements",
          [&, kind = activation] { mjp::cpu::Activate(kind, x.data(), size, y.data()); });
    }
  }

  double seconds_;
  int sequences_;
  BenchRows out_;
};

}  // namespace

BenchRows BenchTransformerCpu(const BenchOptions& options) {
  return TransformerKernels(options).Run();
}

}  // namespace mjp::app
