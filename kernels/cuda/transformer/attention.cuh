#ifndef KERNELS_CUDA_TRANSFORMER_ATTENTION_CUH_
#define KERNELS_CUDA_TRANSFORMER_ATTENTION_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/shared/format.h"

// Multi-head attention of short sequences:
//   out = softmax(q k^T / sqrt(head_size)) v, for every sequence of a batch and every head.

namespace mjp {

// A matrix of token rows in storage: row r of sequence n at data + n * batch + r * pitch. Head h
// has columns [h * head_size, (h + 1) * head_size).
struct DeviceRows {
  const void* data = nullptr;
  int64_t pitch = 0, batch = 0;  // elements, multiples of 8; batch 0: the same for all sequences
};

struct TokenAttentionArgs {
  int sequences = 1, heads = 1, head_size = 0;  // head_size: a multiple of 8 up to 128
  int queries = 0, keys = 0;                    // rows of a sequence
  DeviceRows q, k, v;
  // Rotary embedding of q and k (Su et al. 2021), halves of a head apart: (rows, head_size / 2)
  // cosines and sines; null: none.
  const float *cosines = nullptr, *sines = nullptr;
  void* out = nullptr;  // (sequences, queries, heads * head_size), storage
};

// Enqueues it. A row that sees NaN becomes NaN. Throws Error for a shape that no kernel supports.
void LaunchTokenAttention(Format format, const TokenAttentionArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_ATTENTION_CUH_
