#include "policy/cuda/transformer/token_stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/shared/stored_element.h"

namespace mjp {
namespace {

// W weight, of W as stored, and W bias.
struct FoldedNorm {
  std::vector<float> weight_sums, bias;
};

FoldedNorm Fold(Format format, const Linear& linear, const LayerNormWeights& norm) {
  const int64_t out = linear.weight.shape[0], in = linear.weight.shape[1];
  FoldedNorm folded;
  for (int64_t o = 0; o < out; ++o) {
    double weight_sum = 0, bias = linear.bias.data.empty() ? 0 : linear.bias.data[o];
    for (int64_t i = 0; i < in; ++i) {
      const double w = RoundedOperand(format, linear.weight.data[o * in + i]);
      weight_sum += w * norm.weight.data[i];
      bias += w * norm.bias.data[i];
    }
    folded.weight_sums.push_back(static_cast<float>(weight_sum));
    folded.bias.push_back(static_cast<float>(bias));
  }
  return folded;
}

}  // namespace

DeviceLayerNorm LoadLayerNorm(LayerLoader& loader, const LayerNormWeights& norm) {
  return {loader.Floats(norm.weight.data), loader.Floats(norm.bias.data)};
}

DeviceNormedLinear LoadNormedLinear(LayerLoader& loader, const Linear& linear,
                                    const LayerNormWeights* norm) {
  DeviceNormedLinear loaded;
  loaded.layer = loader.Dense(linear);
  if (norm == nullptr || !tma_linear::Runs(loader.format())) return loaded;
  const size_t out = linear.weight.shape[0];
  const FoldedNorm folded = loader.measuring()
                                ? FoldedNorm{std::vector<float>(out), std::vector<float>(out)}
                                : Fold(loader.format(), linear, *norm);
  loaded.weight_sums = loader.Floats(folded.weight_sums);
  loaded.folded_bias = loader.Floats(folded.bias);
  return loaded;
}

bool CanFoldNorms(Format format, int rows, const std::vector<const DeviceConv*>& layers) {
  return std::ranges::all_of(layers, [&](const DeviceConv* layer) {
    ConvArgs a;
    a.shape = layer->shape;
    a.shape.batch = rows;
    return std::isfinite(tma_linear::Time(format, a));
  });
}

TokenStream::TokenStream(const Config& config, Format format, TokenLaunches& launches,
                         DeviceArena& arena)
    : config_(config), format_(format), launches_(launches) {
  const size_t size = size_t{1} * config.rows * config.width;
  x_ = arena.Take<float>(size);
  y_ = arena.TakeBytes(size * FormatBytes(format));
  branch_ = arena.TakeBytes(size * FormatBytes(format));
  from_ = x_;
  if (!config.folds) return;
  moments_ = arena.Take<float2>(size / tma_linear::kMomentChannels);
  next_moments_ = arena.Take<float2>(size / tma_linear::kMomentChannels);
  shown_ = arena.Take<float>(size);
}

void TokenStream::StartFrom(const float* from, int from_rows) {
  from_ = from;
  from_rows_ = from_rows;
}

TokenNormArgs TokenStream::NormArgs(const DeviceLayerNorm& norm) const {
  TokenNormArgs a;
  a.rows = config_.rows;
  a.width = config_.width;
  a.x = from_;
  a.x_rows = from_rows_;
  a.epsilon = config_.epsilon;
  a.weight = norm.weight;
  a.bias = norm.bias;
  return a;
}

void TokenStream::Norm(const DeviceLayerNorm& norm) {
  Normed();
  TokenNormArgs a = NormArgs(norm);
  if (config_.norms_after) a.normed = x_;
  a.y = y_;
  launches_.Add(a);
  if (config_.norms_after) StartFrom(x_, 0);
}

void TokenStream::AddAndNorm(const DeviceConv& layer, const void* in, const DeviceLayerNorm& norm,
                             const std::string& name) {
  if (!config_.folds || !name.empty()) {
    if (config_.folds) launches_.NextIsForTraces();
    launches_.Linear(layer, in, config_.rows, branch_);
    if (!name.empty()) launches_.Show(name, branch_, false, config_.rows, config_.width);
  }
  if (config_.folds) return AddFolded(layer, in, norm);
  TokenNormArgs a = NormArgs(norm);
  a.branch = branch_;
  (config_.norms_after ? a.normed : a.sum) = x_;
  a.y = y_;
  launches_.Add(a);
  StartFrom(x_, 0);
}

void TokenStream::AddAndNormTwice(const DeviceConv& layer, const void* in,
                                  const DeviceLayerNorm& norm, const DeviceLayerNorm& second) {
  launches_.Linear(layer, in, config_.rows, branch_);
  TokenNormArgs a = NormArgs(norm);
  a.branch = branch_;
  a.second_weight = second.weight, a.second_bias = second.bias;
  a.normed = x_;
  a.y = y_;
  launches_.Add(a);
  StartFrom(x_, 0);
}

void TokenStream::AddFolded(const DeviceConv& layer, const void* in, const DeviceLayerNorm& norm) {
  tma_linear::LayerArgs a;
  a.conv.shape = layer.shape;
  a.conv.shape.batch = config_.rows;
  a.conv.x = in;
  a.conv.weight = layer.weight;
  a.conv.bias = layer.bias;
  a.conv.y = y_;
  tma_linear::ResidualStream& stream = a.stream;
  stream.x = from_;
  stream.x_rows = from_rows_;
  if (config_.norms_after && folded_.weight != nullptr) {
    stream.moments = moments_;
    stream.weight = folded_.weight;
    stream.bias = folded_.bias;
  }
  stream.epsilon = config_.epsilon;
  stream.sum = x_;
  stream.next_weight = norm.weight;
  stream.next_moments = next_moments_;
  launches_.Add(a);
  std::swap(moments_, next_moments_);
  folded_ = norm;
  StartFrom(x_, 0);
}

void TokenStream::Linear(const DeviceNormedLinear& layer, void* out, TokenActivation activation) {
  if (folded_.weight == nullptr)
    return launches_.Linear(layer.layer, y_, config_.rows, out, activation, false, layer.row_bias,
                            layer.rows);
  tma_linear::LayerArgs a;
  a.conv.shape = layer.layer.shape;
  a.conv.shape.batch = config_.rows;
  a.conv.x = y_;
  a.conv.weight = layer.layer.weight;
  a.conv.bias = layer.folded_bias;
  a.conv.row_bias = layer.row_bias;
  a.conv.row_period = layer.rows;
  a.conv.activation = activation;
  a.conv.y = out;
  a.norm = {moments_, layer.weight_sums, config_.epsilon};
  launches_.Add(a);
}

const void* TokenStream::Normed() {
  if (folded_.weight == nullptr) return y_;
  const DeviceLayerNorm norm = std::exchange(folded_, {});
  Norm(norm);
  return y_;
}

void TokenStream::Show(const std::string& name, bool normed, const void* data, bool fp32) {
  if (normed && folded_.weight != nullptr) {
    TokenNormArgs a = NormArgs(folded_);
    a.normed = shown_;
    launches_.NextIsForTraces();
    launches_.Add(a);
    data = shown_, fp32 = true;
  }
  launches_.Show(name, data, fp32, config_.rows, config_.width);
}

}  // namespace mjp
