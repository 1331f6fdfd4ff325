#ifndef KERNELS_REFERENCE_UNET_PASS_H_
#define KERNELS_REFERENCE_UNET_PASS_H_

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/reference/residual_block.h"

// The definition of a pass of the conditional 1-D U-Net in double precision, for tests. `Weights`
// are UnetWeights of policy/checkpoint/network.h, with its layouts.

namespace mjp::reference {

// weight (out, in) x + bias.
template <typename Linear>
std::vector<double> Dense(const Linear& l, const std::vector<double>& x) {
  std::vector<double> y(l.bias.data.begin(), l.bias.data.end());
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) y[o] += double{l.weight.data[o * x.size() + i]} * x[i];
  return y;
}

inline std::vector<double> MishOf(std::vector<double> x) {
  for (double& v : x) v = Activate(Activation::kMish, v);
  return x;
}

// Linear - Mish - Linear of the sinusoidal embedding of timestep t.
template <typename Weights>
std::vector<double> StepEmbedding(const Weights& w, int t) {
  const int e = static_cast<int>(w.time1.weight.shape[1]), half = e / 2;
  std::vector<double> sinusoid(e);
  for (int j = 0; j < half; ++j) {
    const double angle = t * std::exp(-j * std::log(10000.0) / (half - 1));
    sinusoid[j] = std::sin(angle), sinusoid[half + j] = std::cos(angle);
  }
  return Dense(w.time2, MishOf(Dense(w.time1, sinusoid)));
}

template <typename Conv>
Signal ConvOf(const Conv& c, const Signal& x, int stride = 1) {
  const int out = static_cast<int>(c.weight.shape[0]), taps = static_cast<int>(c.weight.shape[2]);
  return Conv1d(x, c.weight.data.data(), c.bias.data.data(), taps, stride, taps / 2, 0, out);
}
template <typename Conv, typename Norm>
Signal ConvNormMish(const Conv& c, const Norm& n, const Signal& x) {
  Signal y = ConvOf(c, x);
  NormMish(y, n.groups, n.weight.data.data(), n.bias.data.data());
  return y;
}

// mish_cond: Mish of the step's embedding and the conditioning vector behind it.
template <typename Block>
Signal ResidualBlock(const Block& b, const Signal& x, const std::vector<double>& mish_cond) {
  Signal y = ConvNormMish(b.conv1, b.norm1, x);
  std::vector<double> scale = Dense(b.film, mish_cond), bias = scale;
  const size_t channels = y.channels;
  if (scale.size() == 2 * channels) {
    bias.erase(bias.begin(), bias.begin() + static_cast<ptrdiff_t>(channels));
    scale.resize(channels);
  } else {
    scale.clear();
  }
  Film(y, scale, bias);
  y = ConvNormMish(b.conv2, b.norm2, y);
  AddTo(y, b.residual ? ConvOf(*b.residual, x) : x);
  return y;
}

// x (action_dim, horizon) under `mish_cond`, as ResidualBlock takes it; like x.
template <typename Weights>
Signal UnetPass(const Weights& w, Signal x, const std::vector<double>& mish_cond) {
  std::vector<Signal> skips;
  for (const auto& level : w.down) {
    x = ResidualBlock(level.block1, x, mish_cond);
    x = ResidualBlock(level.block2, x, mish_cond);
    skips.push_back(x);
    if (level.resample) x = ConvOf(*level.resample, x, 2);
  }
  x = ResidualBlock(w.mid1, x, mish_cond);
  x = ResidualBlock(w.mid2, x, mish_cond);
  for (const auto& level : w.up) {
    x = ResidualBlock(level.block1, Concatenated(x, skips.back()), mish_cond);
    skips.pop_back();
    x = ResidualBlock(level.block2, x, mish_cond);
    if (!level.resample) continue;
    const auto& up = *level.resample;
    const int out = static_cast<int>(up.weight.shape[1]);
    x = Upsample1d(x, up.weight.data.data(), up.bias.data.data(), out, 0, out);
  }
  return ConvOf(w.out, ConvNormMish(w.final_conv, w.final_norm, x));
}
// The same at timestep t under the conditioning vector `cond`.
template <typename Weights>
Signal UnetPass(const Weights& w, Signal x, int t, const std::vector<double>& cond) {
  std::vector<double> mish_cond = StepEmbedding(w, t);
  mish_cond.insert(mish_cond.end(), cond.begin(), cond.end());
  return UnetPass(w, std::move(x), MishOf(mish_cond));
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_UNET_PASS_H_
