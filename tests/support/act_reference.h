#ifndef TESTS_SUPPORT_ACT_REFERENCE_H_
#define TESTS_SUPPORT_ACT_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "kernels/reference/attention_reference.h"
#include "kernels/reference/conv_reference.h"
#include "kernels/reference/layer_norm_reference.h"
#include "kernels/reference/token_activation_reference.h"
#include "policy/act/act_model.h"

// The definition of an ACT policy in double precision, as plainly as possible: one environment,
// every position added where the paper adds it, nothing folded, nothing computed ahead.

namespace mjp_test {

using mjp::reference::Matrix;

class ActReference {
 public:
  ActReference(const mjp::ActModel& model, const mjp::NormalizerStats& stats)
      : model_(model), weights_(model.weights), stats_(stats), width_(model.config.width) {}

  // Every intermediate of one environment by the goldens' names, (rows, width) each; raw inputs,
  // pictures (cameras, height, width, 3).
  std::map<std::string, Matrix> Run(std::span<const uint8_t> pictures, std::span<const float> state,
                                    std::span<const float> environment) {
    taps_.clear();
    tokens_ = positions_ = {};
    AddTokens(pictures, state, environment);
    taps_["encoder_pos"] = positions_;
    Matrix x = taps_["encoder_in"] = tokens_;
    for (size_t i = 0; i < weights_.encoder.size(); ++i) x = EncoderLayer(i, x);
    if (model_.config.pre_norm) x = Norm(weights_.encoder_norm, x);
    taps_["encoder_out"] = x;
    Matrix y(size_t{1} * model_.config.horizon * width_, 0.0);
    for (size_t i = 0; i < weights_.decoder.size(); ++i) y = DecoderLayer(i, y, x);
    y = taps_["decoder_out"] = Norm(weights_.decoder_norm, y);
    taps_["actions_norm"] = Apply(weights_.head, y);
    return taps_;
  }

 private:
  static Matrix Doubles(const mjp::Tensor& tensor) {
    return Matrix(tensor.data.begin(), tensor.data.end());
  }

  static Matrix Sum(Matrix a, const Matrix& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  static double Normalized(const mjp::FeatureStats& stats, size_t i, double x) {
    if (stats.mode == mjp::Normalization::kIdentity) return x;
    if (stats.mode == mjp::Normalization::kMeanStd)
      return (x - stats.first[i]) / (stats.second[i] + 1e-8);
    return 2 * (x - stats.first[i]) / (stats.second[i] - stats.first[i]) - 1;
  }

  // Rows [begin, begin + count) of the layer, applied to every row of x.
  static Matrix Apply(const mjp::Linear& layer, const Matrix& x, size_t begin, size_t count) {
    const size_t in = layer.weight.shape[1], rows = x.size() / in;
    Matrix y;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t o = begin; o < begin + count; ++o) {
        double sum = layer.bias.data[o];
        for (size_t i = 0; i < in; ++i) sum += x[r * in + i] * layer.weight.data[o * in + i];
        y.push_back(sum);
      }
    }
    return y;
  }
  static Matrix Apply(const mjp::Linear& layer, const Matrix& x) {
    return Apply(layer, x, 0, layer.weight.shape[0]);
  }

  Matrix Norm(const mjp::LayerNormWeights& norm, const Matrix& x) const {
    return mjp::reference::LayerNorm(x, width_, 1e-5, norm.weight.data.data(),
                                     norm.bias.data.data());
  }

  Matrix Attend(const mjp::AttentionWeights& attention, const Matrix& q, const Matrix& k,
                const Matrix& v) const {
    const size_t d = width_;
    const Matrix mixed = mjp::reference::Attention(
        Apply(attention.in, q, 0, d), Apply(attention.in, k, d, d),
        Apply(attention.in, v, 2 * d, d), width_, model_.config.heads, false);
    return Apply(attention.out, mixed);
  }

  template <class Layer>
  Matrix FeedForward(const Layer& layer, const Matrix& x) const {
    Matrix hidden = Apply(layer.linear1, x);
    for (double& h : hidden) h = mjp::reference::Activate(model_.config.activation, h);
    return Apply(layer.linear2, hidden);
  }

  Matrix EncoderLayer(size_t index, Matrix x) {
    const mjp::ActEncoderLayer& layer = weights_.encoder[index];
    const std::string name = "encoder/" + std::to_string(index);
    const auto self = [&](const Matrix& from) {
      const Matrix placed = Sum(from, positions_);
      return taps_[name + "/self_attn"] = Attend(layer.self, placed, placed, from);
    };
    if (model_.config.pre_norm) {
      x = Sum(x, self(Norm(layer.norm1, x)));
      x = Sum(x, FeedForward(layer, Norm(layer.norm2, x)));
    } else {
      x = Norm(layer.norm1, Sum(x, self(x)));
      x = Norm(layer.norm2, Sum(x, FeedForward(layer, x)));
    }
    return taps_[name] = x;
  }

  Matrix DecoderLayer(size_t index, Matrix y, const Matrix& encoded) {
    const mjp::ActDecoderLayer& layer = weights_.decoder[index];
    const std::string name = "decoder/" + std::to_string(index);
    const Matrix queries = Doubles(weights_.queries), keys = Sum(encoded, positions_);
    const auto self = [&](const Matrix& from) {
      const Matrix placed = Sum(from, queries);
      return taps_[name + "/self_attn"] = Attend(layer.self, placed, placed, from);
    };
    const auto cross = [&](const Matrix& from) {
      const size_t d = width_;
      taps_[name + "/attention"] = mjp::reference::MeanAttentionWeights(
          Apply(layer.cross.in, Sum(from, queries), 0, d), Apply(layer.cross.in, keys, d, d),
          width_, model_.config.heads);
      return taps_[name + "/multihead_attn"] =
                 Attend(layer.cross, Sum(from, queries), keys, encoded);
    };
    if (model_.config.pre_norm) {
      y = Sum(y, self(Norm(layer.norm1, y)));
      y = Sum(y, cross(Norm(layer.norm2, y)));
      y = Sum(y, FeedForward(layer, Norm(layer.norm3, y)));
    } else {
      y = Norm(layer.norm1, Sum(y, self(y)));
      y = Norm(layer.norm2, Sum(y, cross(y)));
      y = Norm(layer.norm3, Sum(y, FeedForward(layer, y)));
    }
    return taps_[name] = y;
  }

  void AddTokens(std::span<const uint8_t> pictures, std::span<const float> state,
                 std::span<const float> environment) {
    positions_ = Doubles(weights_.positions);
    tokens_ = Doubles(weights_.latent.bias);
    AddVector(weights_.state, stats_.state, "observation.state", state);
    AddVector(weights_.environment, stats_.environment, "observation.environment_state",
              environment);
    for (size_t i = 0; i < model_.config.cameras.size(); ++i) {
      const mjp::CameraFeature& camera = model_.config.cameras[i];
      const size_t size = size_t{3} * camera.height * camera.width;
      AddPicture(i, pictures.subspan(i * size, size));
    }
  }

  void AddVector(const mjp::Linear& layer, const mjp::FeatureStats& stats,
                 const std::string& feature, std::span<const float> values) {
    if (values.empty()) return;
    Matrix normalized;
    for (size_t i = 0; i < values.size(); ++i)
      normalized.push_back(Normalized(stats, i, values[i]));
    const Matrix token = Apply(layer, normalized);
    tokens_.insert(tokens_.end(), token.begin(), token.end());
    taps_["norm/" + feature] = normalized;
  }

  // A feature map, (channels, height, width).
  struct Map {
    int height, width;
    Matrix values;
  };

  static Map Convolve(const mjp::Conv& conv, int stride, const Map& x) {
    mjp::reference::ConvShape shape;
    shape.in = static_cast<int>(conv.weight.shape[1]);
    shape.out = static_cast<int>(conv.weight.shape[0]);
    shape.kernel_h = shape.kernel_w = static_cast<int>(conv.weight.shape[2]);
    shape.pad_h = shape.pad_w = shape.kernel_h / 2;
    shape.height = x.height, shape.width = x.width, shape.stride = stride;
    const float* bias = conv.bias.data.empty() ? nullptr : conv.bias.data.data();
    return {shape.OutHeight(), shape.OutWidth(),
            mjp::reference::Conv(shape, x.values.data(), conv.weight.data.data(), bias)};
  }

  static Map Normalize(const mjp::BatchNorm& norm, Map x) {
    const size_t cells = size_t{1} * x.height * x.width;
    for (size_t i = 0; i < x.values.size(); ++i) {
      const size_t c = i / cells;
      x.values[i] = (x.values[i] - norm.mean.data[c]) / std::sqrt(norm.variance.data[c] + 1e-5) *
                        norm.weight.data[c] +
                    norm.bias.data[c];
    }
    return x;
  }

  static Map Relu(Map x) {
    for (double& v : x.values) v = std::max(v, 0.0);
    return x;
  }

  static Map MaxPool(const Map& x) {
    Map y{(x.height + 1) / 2, (x.width + 1) / 2, {}};
    const size_t cells = size_t{1} * x.height * x.width;
    for (size_t c = 0; c < x.values.size() / cells; ++c) {
      for (int i = 0; i < y.height * y.width; ++i) {
        double most = -1e300;
        for (int row = 2 * (i / y.width) - 1; row < 2 * (i / y.width) + 2; ++row)
          for (int column = 2 * (i % y.width) - 1; column < 2 * (i % y.width) + 2; ++column)
            if (row >= 0 && row < x.height && column >= 0 && column < x.width)
              most = std::max(most, x.values[c * cells + row * x.width + column]);
        y.values.push_back(most);
      }
    }
    return y;
  }

  Map Backbone(Map x) const {
    const mjp::ResNetWeights& net = weights_.backbone;
    x = MaxPool(Relu(Normalize(net.stem_norm, Convolve(net.stem, 2, x))));
    for (const mjp::ResNetBlock& block : net.blocks) {
      Map y = Relu(Normalize(block.norm1, Convolve(block.conv1, block.stride, x)));
      y = Normalize(block.norm2, Convolve(block.conv2, 1, y));
      if (block.downsample)
        x = Normalize(block.downsample_norm, Convolve(*block.downsample, block.stride, x));
      y.values = Sum(y.values, x.values);
      x = Relu(y);
    }
    return x;
  }

  void AddPicture(size_t camera, std::span<const uint8_t> rgb) {
    const mjp::CameraFeature& feature = model_.config.cameras[camera];
    Map x{feature.height, feature.width, {}};
    for (size_t c = 0; c < 3; ++c)
      for (size_t i = c; i < rgb.size(); i += 3)
        x.values.push_back(Normalized(stats_.cameras[camera], c, rgb[i] / 255.0));
    const Map map = Backbone(x);
    taps_["layer4/" + std::to_string(camera)] = map.values;
    const Map placed = Convolve(weights_.image, 1, map);
    const size_t cells = size_t{1} * map.height * map.width;
    for (size_t cell = 0; cell < cells; ++cell)
      for (int c = 0; c < width_; ++c) tokens_.push_back(placed.values[c * cells + cell]);
    AddSines(map.height, map.width);
  }

  void AddSines(int height, int width) {
    const int half = width_ / 2;
    for (int y = 1; y <= height; ++y) {
      for (int x = 1; x <= width; ++x) {
        for (const double place : {y / (height + 1e-6), x / (width + 1e-6)}) {
          for (int c = 0; c < half; ++c) {
            const double angle =
                2 * std::numbers::pi * place / std::pow(10000.0, 2.0 * (c / 2) / half);
            positions_.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
          }
        }
      }
    }
  }

  const mjp::ActModel& model_;
  const mjp::ActWeights& weights_;
  const mjp::NormalizerStats& stats_;
  int width_;
  Matrix tokens_, positions_;
  std::map<std::string, Matrix> taps_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_ACT_REFERENCE_H_
