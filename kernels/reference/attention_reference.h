#ifndef KERNELS_REFERENCE_ATTENTION_REFERENCE_H_
#define KERNELS_REFERENCE_ATTENTION_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <vector>

// The definition of multi-head attention and of the rotary position embedding in double precision,
// for tests. Matrices of one sequence, (rows, width), width = heads * head size.

namespace mjp::reference {

using Matrix = std::vector<double>;

// softmax of the numbers
inline Matrix Softmax(Matrix x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (double& v : x) total += v = std::exp(v - largest);
  for (double& v : x) v /= total;
  return x;
}

// The weights that query i mixes the first `keys` values by, in the head at `column`.
inline Matrix AttentionWeights(const Matrix& q, const Matrix& k, int width, size_t i, size_t keys,
                               size_t column, size_t size) {
  Matrix scores;
  for (size_t j = 0; j < keys; ++j) {
    double score = 0;
    for (size_t d = column; d < column + size; ++d) score += q[i * width + d] * k[j * width + d];
    scores.push_back(score / std::sqrt(static_cast<double>(size)));
  }
  return Softmax(scores);
}

// Their mean over the heads, (queries, keys).
inline Matrix MeanAttentionWeights(const Matrix& q, const Matrix& k, int width, int heads) {
  const size_t queries = q.size() / width, keys = k.size() / width, size = width / heads;
  Matrix mean(queries * keys, 0.0);
  for (size_t i = 0; i < queries; ++i) {
    for (size_t column = 0; column < size_t{1} * width; column += size) {
      const Matrix weights = AttentionWeights(q, k, width, i, keys, column, size);
      for (size_t j = 0; j < keys; ++j) mean[i * keys + j] += weights[j] / heads;
    }
  }
  return mean;
}

// softmax(q k^T / sqrt(head size)) v, head by head. causal: query i sees keys 0 ... i.
inline Matrix Attention(const Matrix& q, const Matrix& k, const Matrix& v, int width, int heads,
                        bool causal) {
  const size_t queries = q.size() / width, keys = k.size() / width, size = width / heads;
  Matrix out(q.size(), 0.0);
  for (size_t i = 0; i < queries; ++i) {
    for (size_t column = 0; column < size_t{1} * width; column += size) {
      const Matrix scores =
          AttentionWeights(q, k, width, i, causal ? std::min(i + 1, keys) : keys, column, size);
      for (size_t j = 0; j < scores.size(); ++j) {
        for (size_t d = column; d < column + size; ++d) {
          out[i * width + d] += scores[j] * v[j * width + d];
        }
      }
    }
  }
  return out;
}

// Turns the halves of every head of row p by the angles p base^(-2 i / head size).
inline Matrix Rotary(Matrix x, int width, int heads, double base) {
  const size_t size = width / heads, half = size / 2;
  for (size_t p = 0; p < x.size() / width; ++p) {
    for (size_t column = 0; column < size_t{1} * width; column += size) {
      for (size_t i = 0; i < half; ++i) {
        const double angle = double(p) * std::pow(base, -2.0 * double(i) / double(size));
        double &a = x[p * width + column + i], &b = x[p * width + column + half + i];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }
  return x;
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_ATTENTION_REFERENCE_H_
