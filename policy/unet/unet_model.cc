#include "policy/unet/unet_model.h"

#include "base/error.h"
#include "base/text_stream.h"
#include "policy/checkpoint/checkpoint_files.h"
#include "policy/unet/network_builder.h"
#include "policy/unet/unet_config.h"

namespace mjp {
namespace {

std::string Joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : "/") + std::to_string(number);
  return text;
}

std::string SchedulerText(const SchedulerConfig& scheduler) {
  TextWriter out;
  if (scheduler.kind == SamplerKind::kOneStep) {
    out << "one pass, of a student that was distilled";
    if (scheduler.clip_sample) out << ", clips to +-" << scheduler.clip_range;
    return out.str();
  }
  out << (scheduler.kind == SamplerKind::kDdpm ? "DDPM" : "DDIM") << ", "
      << scheduler.inference_steps << " of " << scheduler.train_steps << " steps, "
      << (scheduler.beta_schedule == BetaSchedule::kLinear ? "linear" : "squared cosine")
      << " betas, predicts "
      << (scheduler.prediction == PredictionType::kEpsilon  ? "epsilon"
          : scheduler.prediction == PredictionType::kSample ? "the sample"
                                                            : "v");
  if (scheduler.clip_sample) out << ", clips to +-" << scheduler.clip_range;
  return out.str();
}

// The names that the file, or whatever gives the tensors, has for them.
TensorNames NamesIn(const TensorSource& source, const UnetPolicyConfig& config) {
  const TensorNames names = NamesOf(config);
  return names.notebook ? NotebookNames(!source.HasPrefix("noise_pred_net.")) : names;
}

}  // namespace

std::string EncoderText(const EncoderConfig& encoder) {
  if (encoder.kind == EncoderKind::kNone) return "none";
  TextWriter out;
  out << (encoder.kind == EncoderKind::kCompact ? "compact " + Joined(encoder.stage_channels)
                                                : "ResNet-18");
  out << (encoder.group_norm ? ", GroupNorm" : ", BatchNorm (folded)");
  if (encoder.resize_height > 0) {
    out << ", resize " << encoder.resize_height << "x" << encoder.resize_width;
  }
  if (encoder.crop_height > 0) out << ", crop " << encoder.crop_height << "x" << encoder.crop_width;
  if (encoder.pool == PoolKind::kSpatialSoftmax)
    out << ", " << encoder.pool_channels << " keypoints";
  if (encoder.pool == PoolKind::kAverage) out << ", average pool";
  if (encoder.pool == PoolKind::kFlatten) out << ", " << encoder.pool_channels << " flat channels";
  out << ", " << encoder.feature_dim << " features";
  if (encoder.separate_per_camera) out << ", one per camera";
  return out.str();
}

void UnetModel::ReadFiles(CheckpointFiles& files) {
  looks = ReadLooks(files.PathOf(kLookFile), config.cameras);
}

void UnetModel::ListTensors(const TensorSource& source, const VisitShape& visit) const {
  mjp::ListTensors(NamesIn(source, config), config,
                   [&](const std::string& name, const std::vector<int64_t>& shape) {
                     visit(name, shape, TensorRole::kNeeded);
                   });
}

int64_t UnetModel::TakeTensors(TensorSource& source) {
  return BuildNetwork(NamesIn(source, config), source, *this);
}

void UnetModel::VisitTensors(const VisitTensor& visit) const {
  mjp::VisitTensors(NamesOf(config), *this, visit);
}

void UnetModel::AddConfig(Json& json) const { AddUnetPolicy(config, json); }

std::vector<std::pair<std::string, std::string>> UnetModel::Describe() const {
  const UnetConfig& u = config.unet;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"encoder", EncoderText(config.encoder)},
      {"U-Net", Joined(u.down_dims) + ", kernel " + std::to_string(u.kernel_size) + ", " +
                    std::to_string(u.groups) + " groups, step embedding " +
                    std::to_string(u.step_embed_dim)},
      {"sampler", SchedulerText(config.scheduler)}};
  for (const auto& [camera, look] : looks)
    rows.emplace_back("look", camera + " drawn " + LookText(look));
  return rows;
}

SamplerTraits UnetModel::sampler() const {
  const SchedulerConfig& scheduler = config.scheduler;
  if (scheduler.kind == SamplerKind::kOneStep) {
    return {.kinds = {SamplerKind::kOneStep},
            .kind = SamplerKind::kOneStep,
            .steps = 1,
            .most_steps = 1,
            .temperature = scheduler.temperature};
  }
  return {.kinds = {SamplerKind::kDdpm, SamplerKind::kDdim},
          .kind = scheduler.kind,
          .steps = scheduler.inference_steps,
          .most_steps = scheduler.train_steps,
          .temperature = scheduler.temperature,
          .noise_steps = scheduler.train_steps,
          .parallel = true};
}

std::unique_ptr<NetworkModel> ParseUnetModel(KeyReader& keys, const std::string& origin,
                                             PolicyConfig& policy) {
  auto model = std::make_unique<UnetModel>();
  model->config = ParseUnetPolicy(keys, origin, policy);
  policy = model->config;
  return model;
}

const UnetModel* FindUnet(const Checkpoint& checkpoint) {
  return dynamic_cast<const UnetModel*>(checkpoint.network.get());
}

const UnetModel& UnetOf(const Checkpoint& checkpoint) {
  if (const UnetModel* model = FindUnet(checkpoint)) return *model;
  throw Unsupported(checkpoint.directory + ": is of type " + checkpoint.config.type +
                    ", which has no U-Net");
}

}  // namespace mjp
