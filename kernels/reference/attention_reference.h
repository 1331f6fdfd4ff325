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

// softmax(q k^T / sqrt(head size)) v, head by head. causal: query i sees keys 0 ... i.
inline Matrix Attention(const Matrix& q, const Matrix& k, const Matrix& v, int width, int heads,
                        bool causal) {
  const size_t queries = q.size() / width, keys = k.size() / width, size = width / heads;
  Matrix out(q.size(), 0.0);
  for (size_t i = 0; i < queries; ++i) {
    for (size_t column = 0; column < size_t{1} * width; column += size) {
      Matrix scores;
      for (size_t j = 0; j < (causal ? std::min(i + 1, keys) : keys); ++j) {
        double score = 0;
        for (size_t d = column; d < column + size; ++d)
          score += q[i * width + d] * k[j * width + d];
        scores.push_back(score / std::sqrt(static_cast<double>(size)));
      }
      scores = Softmax(scores);
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
