#include "policy/checkpoint/random_checkpoint.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "kernels/shared/philox.h"
#include "policy/unet/position_grid.h"

namespace mjp {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

class RandomSource : public TensorSource {
 public:
  explicit RandomSource(uint64_t seed) : seed_(seed) {}

  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    Tensor tensor;
    tensor.shape = shape;
    int64_t size = 1, fan_in = 1;
    for (const int64_t d : shape) size *= d;
    for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
    tensor.data.resize(size);
    const bool product = EndsWith(name, "weight") && shape.size() >= 2;
    const bool centred = product || EndsWith(name, "bias") || EndsWith(name, "running_mean");
    const float bound = product ? std::sqrt(3.0f / static_cast<float>(fan_in)) : 0.1f;
    for (int64_t i = 0; i < size; ++i) {
      tensor.data[i] = (centred ? 0.0f : 1.0f) + bound * Uniform(static_cast<uint32_t>(i));
    }
    ++tensors_;
    return tensor;
  }
  void Discard(const std::string&) override {}

 private:
  // uniform in [-1, 1)
  float Uniform(uint32_t i) const {
    const PhiloxWords bits = Philox({{i, tensors_, 0, 2}}, static_cast<uint32_t>(seed_),
                                    static_cast<uint32_t>(seed_ >> 32));
    return static_cast<float>(bits.w[0] >> 8) * 0x1p-23f - 1;
  }

  uint64_t seed_;
  uint32_t tensors_ = 0;
};

// Another source's tensors, and a copy of each.
class Copying : public TensorSource {
 public:
  Copying(TensorSource& source, MadeTensors& made) : source_(source), made_(made) {}

  Tensor Take(const std::string& name, const std::vector<int64_t>& shape) override {
    return made_.emplace_back(name, source_.Take(name, shape)).second;
  }
  void Discard(const std::string& name) override { source_.Discard(name); }
  bool HasPrefix(const std::string& prefix) const override { return source_.HasPrefix(prefix); }
  std::vector<int64_t> ShapeOf(const std::string& name) const override {
    return source_.ShapeOf(name);
  }

 private:
  TensorSource& source_;
  MadeTensors& made_;
};

int64_t TakeTensors(NetworkModel& network, TensorSource& source, MadeTensors* made) {
  if (made == nullptr) return network.TakeTensors(source);
  Copying copying(source, *made);
  return network.TakeTensors(copying);
}

}  // namespace

std::unique_ptr<TensorSource> MakeRandomSource(uint64_t seed) {
  return std::make_unique<RandomSource>(seed);
}

std::shared_ptr<const Checkpoint> MadeCheckpoint(const PolicyConfig& config,
                                                 const NormalizerStats& stats,
                                                 std::shared_ptr<NetworkModel> network,
                                                 TensorSource& source, const std::string& name,
                                                 MadeTensors* made) {
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->config = config;
  checkpoint->stats = stats;
  checkpoint->directory = "(random weights)";
  checkpoint->sha256 = kRandomPrefix + name;
  if (const auto* unet = dynamic_cast<const UnetModel*>(network.get())) {
    WithPositionGrid with_grid(source, unet->config);
    checkpoint->parameter_count = TakeTensors(*network, with_grid, made);
  } else {
    checkpoint->parameter_count = TakeTensors(*network, source, made);
  }
  checkpoint->network = std::move(network);
  return checkpoint;
}

std::shared_ptr<const Checkpoint> RandomCheckpoint(const UnetPolicyConfig& config,
                                                   const NormalizerStats& stats, uint64_t seed) {
  auto network = std::make_shared<UnetModel>();
  network->config = config;
  RandomSource source(seed);
  return MadeCheckpoint(config, stats, std::move(network), source, std::to_string(seed));
}

std::vector<std::string> NamedNetworks() {
  return {"compact", "lerobot", "lerobot-128", "notebook"};
}

UnetPolicyConfig NamedConfig(const std::string& name) {
  UnetPolicyConfig config;
  config.type = "diffusion";
  config.cameras = {{"observation.image", 3, 96, 96}};
  config.state_dim = config.action_dim = 2;
  config.encoder.kind = EncoderKind::kResNet18;
  if (name == "compact") {
    config.type = "diffusion_compact";
    config.encoder = CompactEncoderConfig();
    config.unet.down_dims = {64, 128, 256};
  } else if (name == "lerobot" || name == "lerobot-128") {
    config.encoder.crop_height = config.encoder.crop_width = 84;
    if (name == "lerobot-128") config.unet.down_dims = {128, 256, 512};
  } else if (name == "notebook") {
    config.type = "diffusion_notebook";
    config.encoder.pool = PoolKind::kAverage;
    config.encoder.feature_dim = 512;
    config.encoder.feature_relu = false;
    config.cond_order = CondOrder::kImageState;
    config.unet.down_dims = {256, 512, 1024};
    config.unet.step_embed_dim = 256;
  } else {
    std::string known;
    for (const std::string& each : NamedNetworks()) known += " " + each;
    throw Error(ExitCode::kUsage, "no network is called '" + name + "'; there are:" + known);
  }
  return config;
}

std::shared_ptr<const Checkpoint> NamedNetwork(const std::string& name) {
  NormalizerStats stats;
  stats.cameras = {{Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {Normalization::kMinMax, {0, 0}, {512, 512}};
  return RandomCheckpoint(NamedConfig(name), stats, 0);
}

}  // namespace mjp
