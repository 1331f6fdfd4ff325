#include "policy/unet/network_builder.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace mjp {
namespace {

constexpr int kFinalGroups = 8;  // of the U-Net's last norm, whatever n_groups says
constexpr double kBatchNormEpsilon = 1e-5;

// ---- outlines: the tree with every tensor's shape and no data -----------------------------------

Tensor Shaped(std::vector<int64_t> shape) { return {std::move(shape), {}}; }

Linear OutlineLinear(int64_t out, int64_t in) { return {Shaped({out, in}), Shaped({out})}; }

Conv OutlineConv1d(int64_t out, int64_t in, int64_t kernel) {
  return {Shaped({out, in, kernel}), Shaped({out})};
}

Conv OutlineConv2d(int64_t out, int64_t in, int64_t kernel, bool bias) {
  return {Shaped({out, in, kernel, kernel}), bias ? Shaped({out}) : Tensor{}};
}

GroupNorm OutlineNorm(int64_t channels, int groups) {
  return {groups, Shaped({channels}), Shaped({channels})};
}

ResidualBlock1d OutlineResidual(const UnetPolicyConfig& config, int64_t in, int64_t out) {
  const UnetConfig& unet = config.unet;
  ResidualBlock1d block;
  block.conv1 = OutlineConv1d(out, in, unet.kernel_size);
  block.conv2 = OutlineConv1d(out, out, unet.kernel_size);
  block.norm1 = block.norm2 = OutlineNorm(out, unet.groups);
  block.film = OutlineLinear(unet.film_scale ? 2 * out : out,
                             int64_t{unet.step_embed_dim} + config.CondDim());
  if (in != out) block.residual = OutlineConv1d(out, in, 1);
  return block;
}

EncoderWeights OutlineEncoder(const EncoderConfig& config, const CameraFeature& camera) {
  const auto norm = [&](int64_t channels, int groups) {
    return OutlineNorm(channels, config.group_norm ? groups : 0);
  };
  EncoderWeights encoder;
  encoder.stem = OutlineConv2d(config.stem_channels, camera.channels, config.stem_kernel, false);
  encoder.stem_norm = norm(config.stem_channels, config.stem_groups);
  int64_t in = config.stem_channels;
  for (size_t stage = 0; stage < config.stage_channels.size(); ++stage) {
    const int64_t out = config.stage_channels[stage];
    const int groups = config.stage_channels[stage] / config.channels_per_group;
    for (int i = 0; i < config.blocks_per_stage; ++i) {
      BasicBlock2d block;
      block.stride = i == 0 ? config.stage_strides[stage] : 1;
      block.conv1 = OutlineConv2d(out, in, 3, false);
      block.conv2 = OutlineConv2d(out, out, 3, false);
      block.norm1 = block.norm2 = norm(out, groups);
      if (block.stride != 1 || in != out) {
        block.downsample = OutlineConv2d(out, in, 1, false);
        block.downsample_norm = norm(out, groups);
      }
      encoder.blocks.push_back(std::move(block));
      in = out;
    }
  }
  if (config.pool == PoolKind::kAverage) return encoder;
  const MapSize map = FeatureMapSize(config, camera);
  const int64_t cells = int64_t{map.height} * map.width;
  encoder.pool_conv = OutlineConv2d(config.pool_channels, in, 1, true);
  if (config.pool == PoolKind::kSpatialSoftmax) encoder.pos_grid = Shaped({cells, 2});
  const int64_t pooled =
      config.pool_channels * (config.pool == PoolKind::kSpatialSoftmax ? int64_t{2} : cells);
  encoder.out = OutlineLinear(config.feature_dim, pooled);
  return encoder;
}

// ---- names: one walk over the tree serves reading and writing
// ------------------------------------

template <class Visitor, class L>
void WalkLayer(const std::string& name, L& layer, Visitor& visitor) {
  visitor.Leaf(name + ".weight", layer.weight);
  visitor.Leaf(name + ".bias", layer.bias);
}

template <class Visitor, class C, class N>
void WalkConvNorm(const std::string& conv_name, const std::string& norm_name, C& conv, N& norm,
                  Visitor& visitor) {
  WalkLayer(conv_name, conv, visitor);
  visitor.Norm(norm_name, conv, norm);
}

template <class Visitor, class Block>
void WalkResidual(const TensorNames& names, const std::string& name, Block& block,
                  Visitor& visitor) {
  const std::string conv1 = name + (names.notebook ? ".blocks.0.block." : ".conv1.block.");
  const std::string conv2 = name + (names.notebook ? ".blocks.1.block." : ".conv2.block.");
  WalkConvNorm(conv1 + "0", conv1 + "1", block.conv1, block.norm1, visitor);
  WalkLayer(name + ".cond_encoder.1", block.film, visitor);
  WalkConvNorm(conv2 + "0", conv2 + "1", block.conv2, block.norm2, visitor);
  if (block.residual) WalkLayer(name + ".residual_conv", *block.residual, visitor);
}

template <class Visitor, class Levels>
void WalkLevels(const TensorNames& names, const std::string& name, Levels& levels,
                Visitor& visitor) {
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::string level = name + std::to_string(i);
    WalkResidual(names, level + ".0", levels[i].block1, visitor);
    WalkResidual(names, level + ".1", levels[i].block2, visitor);
    if (levels[i].resample) {
      WalkLayer(level + (names.notebook ? ".2.conv" : ".2"), *levels[i].resample, visitor);
    }
  }
}

template <class Visitor, class Unet>
void WalkUnet(const TensorNames& names, Unet& unet, Visitor& visitor) {
  const std::string& prefix = names.unet;
  WalkLayer(prefix + "diffusion_step_encoder.1", unet.time1, visitor);
  WalkLayer(prefix + "diffusion_step_encoder.3", unet.time2, visitor);
  WalkLevels(names, prefix + "down_modules.", unet.down, visitor);
  WalkResidual(names, prefix + "mid_modules.0", unet.mid1, visitor);
  WalkResidual(names, prefix + "mid_modules.1", unet.mid2, visitor);
  WalkLevels(names, prefix + "up_modules.", unet.up, visitor);
  WalkConvNorm(prefix + "final_conv.0.block.0", prefix + "final_conv.0.block.1", unet.final_conv,
               unet.final_norm, visitor);
  WalkLayer(prefix + "final_conv.1", unet.out, visitor);
}

template <class Visitor, class Encoder>
void WalkEncoder(const TensorNames& names, const std::string& prefix, int blocks_per_stage,
                 Encoder& encoder, Visitor& visitor) {
  // LeRobot keeps torchvision's layers in a Sequential: 2 and 3 are ReLU and max-pool
  const std::string backbone = names.notebook ? prefix : prefix + "backbone.";
  WalkConvNorm(backbone + (names.notebook ? "conv1" : "0"),
               backbone + (names.notebook ? "bn1" : "1"), encoder.stem, encoder.stem_norm, visitor);
  for (size_t i = 0; i < encoder.blocks.size(); ++i) {
    const size_t stage = i / blocks_per_stage, index = i % blocks_per_stage;
    const std::string stage_name =
        names.notebook ? "layer" + std::to_string(stage + 1) : std::to_string(stage + 4);
    const std::string name = backbone + stage_name + "." + std::to_string(index);
    auto& block = encoder.blocks[i];
    WalkConvNorm(name + ".conv1", name + ".bn1", block.conv1, block.norm1, visitor);
    WalkConvNorm(name + ".conv2", name + ".bn2", block.conv2, block.norm2, visitor);
    if (block.downsample) {
      WalkConvNorm(name + ".downsample.0", name + ".downsample.1", *block.downsample,
                   block.downsample_norm, visitor);
    }
  }
  visitor.Buffer(prefix + "pool.pos_grid", encoder.pos_grid);
  WalkLayer(prefix + "pool.nets", encoder.pool_conv, visitor);
  WalkLayer(prefix + "out", encoder.out, visitor);
}

std::string EncoderPrefix(const TensorNames& names, const UnetPolicyConfig& config, size_t index) {
  return config.encoder.separate_per_camera ? names.encoder + std::to_string(index) + "."
                                            : names.encoder;
}

template <class Visitor, class Encoders>
void WalkEncoders(const TensorNames& names, const UnetPolicyConfig& config, Encoders& encoders,
                  Visitor& visitor) {
  for (size_t i = 0; i < encoders.size(); ++i) {
    WalkEncoder(names, EncoderPrefix(names, config, i), config.encoder.blocks_per_stage,
                encoders[i], visitor);
  }
}

// ---- the visitors
// ---------------------------------------------------------------------------------

// Replaces outlines by the source's tensors. A tensor without a shape is one the layer lacks.
class Reader {
 public:
  explicit Reader(TensorSource& source) : source_(source) {}

  void Buffer(const std::string& name, Tensor& tensor) {
    if (!tensor.shape.empty()) tensor = source_.Take(name, tensor.shape);
  }

  void Leaf(const std::string& name, Tensor& tensor) {
    if (tensor.shape.empty()) return;
    int64_t size = 1;
    for (const int64_t extent : tensor.shape) size *= extent;
    parameter_count_ += size;
    tensor = source_.Take(name, tensor.shape);
  }

  void Norm(const std::string& name, Conv& conv, GroupNorm& norm) {
    Leaf(name + ".weight", norm.weight);
    Leaf(name + ".bias", norm.bias);
    if (norm.groups == 0) Fold(name, conv, norm);
  }

  int64_t parameter_count() const { return parameter_count_; }

 private:
  // y = (conv(x) - mean) / sqrt(variance + eps) * weight + bias is one convolution with a bias
  void Fold(const std::string& name, Conv& conv, GroupNorm& norm) {
    const Tensor mean = source_.Take(name + ".running_mean", norm.weight.shape);
    const Tensor variance = source_.Take(name + ".running_var", norm.weight.shape);
    source_.Discard(name + ".num_batches_tracked");
    const size_t channels = norm.weight.data.size();
    const size_t row = conv.weight.data.size() / channels;
    conv.bias = {norm.bias.shape, std::vector<float>(channels)};
    for (size_t c = 0; c < channels; ++c) {
      if (!(variance.data[c] >= 0)) {
        throw BadInput(name + ".running_var[" + std::to_string(c) +
                       "] is negative: a variance cannot be; export the checkpoint again");
      }
      const double scale = norm.weight.data[c] / std::sqrt(variance.data[c] + kBatchNormEpsilon);
      for (size_t i = 0; i < row; ++i) {
        float& weight = conv.weight.data[c * row + i];
        weight = static_cast<float>(weight * scale);
      }
      conv.bias.data[c] = static_cast<float>(norm.bias.data[c] - mean.data[c] * scale);
    }
    norm = {};
  }

  TensorSource& source_;
  int64_t parameter_count_ = 0;
};

// Hands each tensor to a function. Throws Error for a norm that is not of groups.
template <typename T>
class Each {
 public:
  using Visit = std::function<void(const std::string&, T&)>;
  explicit Each(const Visit& visit) : visit_(visit) {}

  void Buffer(const std::string& name, T& tensor) { Leaf(name, tensor); }
  void Leaf(const std::string& name, T& tensor) {
    if (!tensor.shape.empty()) visit_(name, tensor);
  }
  template <typename C, typename N>
  void Norm(const std::string& name, C&, N& norm) {
    if (norm.groups == 0) {
      throw Unsupported(name +
                        " was a BatchNorm and is folded: such a checkpoint cannot be "
                        "written; copy the original directory instead");
    }
    Leaf(name + ".weight", norm.weight);
    Leaf(name + ".bias", norm.bias);
  }

 private:
  const Visit& visit_;
};

// Tells which tensors the Reader will ask for.
class Requester {
 public:
  using Visit = std::function<void(const std::string&, const std::vector<int64_t>&)>;
  explicit Requester(const Visit& visit) : visit_(visit) {}

  void Buffer(const std::string& name, const Tensor& tensor) { Leaf(name, tensor); }

  void Leaf(const std::string& name, const Tensor& tensor) {
    if (!tensor.shape.empty()) visit_(name, tensor.shape);
  }

  void Norm(const std::string& name, const Conv&, const GroupNorm& norm) {
    Leaf(name + ".weight", norm.weight);
    Leaf(name + ".bias", norm.bias);
    if (norm.groups > 0) return;
    Leaf(name + ".running_mean", norm.weight);
    Leaf(name + ".running_var", norm.weight);
  }

 private:
  const Visit& visit_;
};

}  // namespace

UnetWeights OutlineUnet(const UnetPolicyConfig& config) {
  const std::vector<int>& dims = config.unet.down_dims;
  const int64_t embed = config.unet.step_embed_dim;
  UnetWeights unet;
  unet.time1 = OutlineLinear(4 * embed, embed);
  unet.time2 = OutlineLinear(embed, 4 * embed);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t in = i == 0 ? config.action_dim : dims[i - 1];
    UnetLevel level{OutlineResidual(config, in, dims[i]), OutlineResidual(config, dims[i], dims[i]),
                    std::nullopt};
    if (i + 1 < dims.size()) level.resample = OutlineConv1d(dims[i], dims[i], 3);
    unet.down.push_back(std::move(level));
  }
  unet.mid1 = unet.mid2 = OutlineResidual(config, dims.back(), dims.back());
  for (size_t i = dims.size() - 1; i > 0; --i) {
    const int64_t out = dims[i - 1];
    unet.up.push_back({OutlineResidual(config, 2 * int64_t{dims[i]}, out),
                       OutlineResidual(config, out, out), OutlineConv1d(out, out, 4)});
  }
  unet.final_conv = OutlineConv1d(dims[0], dims[0], config.unet.kernel_size);
  unet.final_norm = OutlineNorm(dims[0], kFinalGroups);
  unet.out = OutlineConv1d(config.action_dim, dims[0], 1);
  return unet;
}

TensorNames LeRobotNames() { return {}; }

TensorNames NotebookNames(bool bare_unet) {
  return {bare_unet ? "" : "noise_pred_net.", "vision_encoder.", true};
}

TensorNames NamesOf(const UnetPolicyConfig& config) {
  if (config.type != "diffusion_notebook") return LeRobotNames();
  return NotebookNames(config.cameras.empty());
}

std::vector<EncoderWeights> OutlineEncoders(const EncoderConfig& encoder,
                                            const std::vector<CameraFeature>& cameras) {
  std::vector<EncoderWeights> encoders;
  if (cameras.empty()) return encoders;
  const size_t count = encoder.separate_per_camera ? cameras.size() : 1;
  for (size_t i = 0; i < count; ++i) encoders.push_back(OutlineEncoder(encoder, cameras[i]));
  return encoders;
}

void VisitEncoder(const std::string& prefix, const EncoderConfig& config, EncoderWeights& encoder,
                  const std::function<void(const std::string&, Tensor&)>& visit) {
  Each<Tensor> each(visit);
  WalkEncoder({}, prefix, config.blocks_per_stage, encoder, each);
}

void VisitEncoder(const std::string& prefix, const EncoderConfig& config,
                  const EncoderWeights& encoder,
                  const std::function<void(const std::string&, const Tensor&)>& visit) {
  Each<const Tensor> each(visit);
  WalkEncoder({}, prefix, config.blocks_per_stage, encoder, each);
}

MapSize FeatureMapSize(const EncoderConfig& encoder, const CameraFeature& camera) {
  const auto after = [&](int size) {
    size = (size - 1) / encoder.stem_stride + 1;
    if (encoder.stem_max_pool) size = (size - 1) / 2 + 1;
    for (const int stride : encoder.stage_strides) size = (size - 1) / stride + 1;
    return size;
  };
  MapSize size{camera.height, camera.width};
  if (encoder.resize_height > 0) size = {encoder.resize_height, encoder.resize_width};
  if (encoder.crop_height > 0) size = {encoder.crop_height, encoder.crop_width};
  return {after(size.height), after(size.width)};
}

int64_t BuildNetwork(const TensorNames& names, TensorSource& source, UnetModel& model) {
  const UnetPolicyConfig& config = model.config;
  Reader reader(source);
  model.encoders = OutlineEncoders(config.encoder, config.cameras);
  WalkEncoders(names, config, model.encoders, reader);
  model.unet = OutlineUnet(config);
  WalkUnet(names, model.unet, reader);
  return reader.parameter_count();
}

void ListTensors(
    const TensorNames& names, const UnetPolicyConfig& config,
    const std::function<void(const std::string&, const std::vector<int64_t>&)>& visit) {
  Requester requester(visit);
  const std::vector<EncoderWeights> encoders = OutlineEncoders(config.encoder, config.cameras);
  WalkEncoders(names, config, encoders, requester);
  const UnetWeights unet = OutlineUnet(config);
  WalkUnet(names, unet, requester);
}

int64_t FillUnet(const TensorNames& names, TensorSource& source, UnetWeights& unet) {
  Reader reader(source);
  WalkUnet(names, unet, reader);
  return reader.parameter_count();
}

void VisitUnet(const TensorNames& names, const UnetWeights& unet,
               const std::function<void(const std::string&, const Tensor&)>& visit) {
  Each<const Tensor> lister(visit);
  WalkUnet(names, unet, lister);
}

void VisitTensors(const TensorNames& names, const UnetModel& model,
                  const std::function<void(const std::string&, const Tensor&)>& visit) {
  Each<const Tensor> lister(visit);
  WalkEncoders(names, model.config, model.encoders, lister);
  WalkUnet(names, model.unet, lister);
}

}  // namespace mjp
