#ifndef TESTS_POLICY_DIT_DIT_REFERENCE_H_
#define TESTS_POLICY_DIT_DIT_REFERENCE_H_

#include <cmath>
#include <string>
#include <vector>

#include "kernels/reference/attention_reference.h"
#include "kernels/reference/layer_norm_reference.h"
#include "kernels/reference/token_activation_reference.h"
#include "policy/dit/dit_weights.h"

// The networks of multi_task_dit in double precision, as plainly as possible: nothing split,
// nothing kept, one row at a time.

namespace mjp_test {

using mjp::reference::Matrix;

inline Matrix Doubles(const mjp::Tensor& tensor) {
  return {tensor.data.begin(), tensor.data.end()};
}

// x (rows, in) W^T + b
inline Matrix Apply(const mjp::Linear& linear, const Matrix& x) {
  const size_t out = linear.weight.shape[0], in = linear.weight.shape[1];
  Matrix y;
  for (size_t row = 0; row < x.size(); row += in) {
    for (size_t o = 0; o < out; ++o) {
      double sum = linear.bias.data[o];
      for (size_t i = 0; i < in; ++i) sum += x[row + i] * double{linear.weight.data[o * in + i]};
      y.push_back(sum);
    }
  }
  return y;
}

inline Matrix Apply(mjp::TokenActivation activation, Matrix x) {
  for (double& v : x) v = mjp::reference::Activate(activation, v);
  return x;
}

inline Matrix Apply(const mjp::LayerNormWeights& norm, const Matrix& x) {
  return mjp::reference::LayerNorm(x, static_cast<int>(norm.weight.data.size()), 1e-5,
                                   norm.weight.data.data(), norm.bias.data.data());
}

inline Matrix Sum(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

inline Matrix ClipLayerReference(const mjp::ClipLayer& layer, const mjp::ClipTower& tower, Matrix x,
                                 bool causal) {
  const Matrix y = Apply(layer.norm1, x);
  const Matrix heads = mjp::reference::Attention(
      Apply(layer.q, y), Apply(layer.k, y), Apply(layer.v, y), tower.width, tower.heads, causal);
  x = Sum(x, Apply(layer.out, heads));
  return Sum(x, Apply(layer.fc2, Apply(tower.activation, Apply(layer.fc1, Apply(layer.norm2, x)))));
}

// The class token of one picture, pixels (3, size, size), normalised.
inline Matrix VisionReference(const mjp::ClipVisionWeights& weights, const mjp::ClipConfig& clip,
                              const Matrix& pixels) {
  const int size = clip.image, patch = clip.patch, width = clip.vision.width;
  Matrix x = Doubles(weights.class_embedding);
  for (int top = 0; top < size; top += patch) {
    for (int left = 0; left < size; left += patch) {
      for (int o = 0; o < width; ++o) {
        double sum = 0;
        for (int i = 0; i < 3 * patch * patch; ++i) {
          const int channel = i / patch / patch, row = top + i / patch % patch;
          sum += pixels[(size_t{1} * channel * size + row) * size + left + i % patch] *
                 weights.patch_embedding.data[size_t{3} * o * patch * patch + i];
        }
        x.push_back(sum);
      }
    }
  }
  x = Apply(weights.pre_norm, Sum(x, Doubles(weights.position_embedding)));
  for (const auto& layer : weights.layers) x = ClipLayerReference(layer, clip.vision, x, false);
  x.resize(width);
  return x;
}

// The last token after the final norm.
inline Matrix TextReference(const mjp::ClipTextWeights& weights, const mjp::ClipConfig& clip,
                            const std::vector<int>& ids) {
  const int width = clip.text.width;
  Matrix x;
  for (size_t t = 0; t < ids.size(); ++t) {
    for (int c = 0; c < width; ++c) {
      x.push_back(double{weights.token_embedding.data[size_t{1} * ids[t] * width + c]} +
                  weights.position_embedding.data[t * width + c]);
    }
  }
  for (const auto& layer : weights.layers) x = ClipLayerReference(layer, clip.text, x, true);
  x = Apply(weights.final_norm, x);
  return {x.end() - width, x.end()};
}

// One pass: x (horizon, action), cond (CondDim()).
inline Matrix TrunkReference(const mjp::DitWeights& weights, const mjp::DitConfig& config,
                             const Matrix& x, double time, const Matrix& cond) {
  using mjp::TokenActivation;
  const int width = config.hidden, half = config.time_embed / 2, horizon = config.horizon;
  Matrix features;
  for (int i = 0; i < 2 * half; ++i) {
    const double angle = time * std::pow(10000.0, -double(i % half) / (half - 1));
    features.push_back(i < half ? std::sin(angle) : std::cos(angle));
  }
  features = Apply(TokenActivation::kGeluErf, Apply(weights.time1, features));
  features = Apply(TokenActivation::kGeluErf, Apply(weights.time2, features));
  features.insert(features.end(), cond.begin(), cond.end());
  features = Apply(TokenActivation::kSilu, features);
  Matrix h = Apply(weights.input, x);
  if (config.position_embedding) h = Sum(h, Doubles(weights.position));
  for (const mjp::DitBlock& block : weights.blocks) {
    const Matrix terms = Apply(block.modulation, features);
    const auto term = [&](int i) {
      return Matrix(terms.begin() + i * width, terms.begin() + (i + 1) * width);
    };
    const auto norm = [&](int shift, int scale) {
      return mjp::reference::Modulate(mjp::reference::LayerNorm(h, width, 1e-6, nullptr, nullptr),
                                      width, horizon, term(scale), term(shift));
    };
    const auto add = [&](int term_of_gate, const Matrix& y) {
      const Matrix gate = term(term_of_gate);
      for (size_t i = 0; i < h.size(); ++i) h[i] += gate[i % width] * y[i];
    };
    const Matrix qkv = Apply(block.qkv, norm(0, 1));
    Matrix part[3];
    for (size_t i = 0; i < qkv.size(); ++i) part[i / width % 3].push_back(qkv[i]);
    for (int i = 0; i < 2 && config.rope; ++i) {
      part[i] = mjp::reference::Rotary(part[i], width, config.heads, config.rope_base);
    }
    add(2, Apply(block.out,
                 mjp::reference::Attention(part[0], part[1], part[2], width, config.heads, false)));
    add(5, Apply(block.mlp2, Apply(TokenActivation::kGeluTanh, Apply(block.mlp1, norm(3, 4)))));
  }
  return Apply(weights.output, h);
}

}  // namespace mjp_test

#endif  // TESTS_POLICY_DIT_DIT_REFERENCE_H_
