#ifndef KERNELS_CPU_TRANSFORMER_ATTENTION_H_
#define KERNELS_CPU_TRANSFORMER_ATTENTION_H_

#include <cstddef>
#include <cstdint>

// Multi-head attention of short sequences:
//   out = softmax(q k^T / sqrt(head_size)) v, for every sequence of a batch and every head.
// Each head packs its keys and values as weights of the one product
// (kernels/cpu/product/product.h), and two products with a softmax between them do the rest; so the
// order of every sum is the product's.

namespace mjp::cpu {

// A matrix of token rows: row r of sequence n at data + n * batch + r * pitch. Head h has columns
// [h * head_size, (h + 1) * head_size).
struct TokenRows {
  const float* data = nullptr;
  int64_t pitch = 0, batch = 0;
};

struct AttentionArgs {
  int sequences = 1, heads = 1, head_size = 0;
  int queries = 0, keys = 0;  // rows of a sequence
  TokenRows q = {}, k = {}, v = {};
  float* out = nullptr;  // (sequences, queries, heads * head_size), out_batch and out_pitch apart
  int64_t out_pitch = 0, out_batch = 0;
  bool causal = false;  // query i sees keys 0 ... i

  int Parts() const { return sequences * heads; }
};

// Floats of scratch memory that one call needs.
size_t AttentionScratch(const AttentionArgs& args);

// Computes parts [begin, end), where part p is head p % heads of sequence p / heads. A row that
// sees NaN becomes NaN.
void Attention(const AttentionArgs& args, int begin, int end, float* scratch);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_ATTENTION_H_
