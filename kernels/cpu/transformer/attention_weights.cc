#include "kernels/cpu/transformer/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/transformer/softmax.h"

namespace mjp::cpu {
namespace {

// scores (keys) of one query and head, before the scale
void Score(const AttentionArgs& args, const float* q, const float* k, float* scores) {
  for (int j = 0; j < args.keys; ++j, k += args.k.pitch) {
    double sum = 0;
    for (int d = 0; d < args.head_size; ++d) sum += double{q[d]} * k[d];
    scores[j] = static_cast<float>(sum);
  }
}

}  // namespace

void MeanAttentionWeights(const AttentionArgs& args, float* weights) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.head_size));
  std::vector<float> scores(args.keys);
  std::vector<double> sums(args.keys);
  for (int n = 0; n < args.sequences; ++n) {
    for (int i = 0; i < args.queries; ++i, weights += args.keys) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int head = 0; head < args.heads; ++head) {
        const int column = head * args.head_size;
        Score(args, args.q.data + n * args.q.batch + i * args.q.pitch + column,
              args.k.data + n * args.k.batch + column, scores.data());
        Softmax(scores.data(), args.keys, scale);
        for (int j = 0; j < args.keys; ++j) sums[j] += scores[j];
      }
      for (int j = 0; j < args.keys; ++j) weights[j] = static_cast<float>(sums[j] / args.heads);
    }
  }
}

}  // namespace mjp::cpu
