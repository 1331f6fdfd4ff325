#include "policy/cpu/tokens.h"

#include <algorithm>

#include "kernels/cpu/transformer/activate.h"

namespace mjp::cpu {

void LinearTokens(ThreadPool& pool, const ConvLayer& layer, const float* x, int64_t x_pitch,
                  int rows, TokenActivation activation, float* y, int64_t y_pitch) {
  pool.ForBlocks(rows, layer.out, PanelChannels(), [&](const Block& b) {
    float* out = y + b.batch_begin * y_pitch;
    const int count = b.batch_end - b.batch_begin;
    LinearRows(layer, x + b.batch_begin * x_pitch, x_pitch, count, out, y_pitch, b.channel_begin,
               b.channel_end);
    if (activation == TokenActivation::kNone) return;
    for (int r = 0; r < count; ++r) {
      float* row = out + r * y_pitch + b.channel_begin;
      Activate(activation, row, b.channel_end - b.channel_begin, row);
    }
  });
}

void NormTokens(ThreadPool& pool, const LayerNormArgs& args, int rows) {
  pool.ForBlocks(rows, 1, 1, [&](const Block& b) { LayerNorm(args, b.batch_begin, b.batch_end); });
}

void AddTokens(ThreadPool& pool, const ResidualArgs& args, int rows) {
  pool.ForBlocks(rows, 1, 1,
                 [&](const Block& b) { AddResidual(args, b.batch_begin, b.batch_end); });
}

void RotateTokens(ThreadPool& pool, const RotaryTable& table, int heads, float* x, int64_t pitch,
                  int rows) {
  pool.ForBlocks(rows, 1, 1, [&](const Block& b) {
    ApplyRotary(table, heads, x, pitch, b.batch_begin, b.batch_end);
  });
}

AlignedBuffer MakeAttentionScratch(const ThreadPool& pool, const AttentionArgs& args) {
  return AlignedBuffer(size_t{1} * pool.threads() * AttentionScratch(args));
}

void Attend(ThreadPool& pool, const AttentionArgs& args, AlignedBuffer& scratch) {
  const size_t size = AttentionScratch(args);
  const int parts = args.Parts(), threads = pool.threads();
  pool.Run([&](int thread) {
    Attention(args, parts * thread / threads, parts * (thread + 1) / threads,
              scratch.data() + thread * size);
  });
}

}  // namespace mjp::cpu
