#ifndef POLICY_CPU_TOKENS_H_
#define POLICY_CPU_TOKENS_H_

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/transformer/attention.h"
#include "kernels/cpu/transformer/layer_norm.h"
#include "kernels/cpu/transformer/rotary.h"
#include "kernels/shared/token_activation.h"
#include "policy/cpu/layers.h"

// The layers of transformers on rows of tokens, divided between the threads of a pool. A row's
// result does not depend on the threads or on the rows of other sequences.

namespace mjp::cpu {

// y (rows, layer.out) = activation(x (rows, layer.in) W + b)
void LinearTokens(ThreadPool& pool, const ConvLayer& layer, const float* x, int64_t x_pitch,
                  int rows, TokenActivation activation, float* y, int64_t y_pitch);

// Rows [0, rows) of `args`.
void NormTokens(ThreadPool& pool, const LayerNormArgs& args, int rows);
void AddTokens(ThreadPool& pool, const ResidualArgs& args, int rows);
void RotateTokens(ThreadPool& pool, const RotaryTable& table, int heads, float* x, int64_t pitch,
                  int rows);

// Scratch memory of Attend for all threads of a pool: made for the largest `args`.
AlignedBuffer MakeAttentionScratch(const ThreadPool& pool, const AttentionArgs& args);
// All sequences and heads.
void Attend(ThreadPool& pool, const AttentionArgs& args, AlignedBuffer& scratch);

}  // namespace mjp::cpu

#endif  // POLICY_CPU_TOKENS_H_
