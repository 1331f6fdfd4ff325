#ifndef KERNELS_CPU_TRANSFORMER_ATTENTION_WEIGHTS_H_
#define KERNELS_CPU_TRANSFORMER_ATTENTION_WEIGHTS_H_

#include "kernels/cpu/transformer/attention.h"

namespace mjp::cpu {

// What attention mixes its values by, for people: weights (sequences, queries, keys) are the mean
// over the heads of softmax(q k^T / sqrt(head_size)), so that every row sums to 1. Reads neither v
// nor causal. A row that sees NaN becomes NaN. Plain code: decisions do not come here.
void MeanAttentionWeights(const AttentionArgs& args, float* weights);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_ATTENTION_WEIGHTS_H_
