#include <algorithm>
#include <cstdio>

#include "base/text_stream.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/safetensors.h"
#include "policy/checkpoint/statistics.h"

namespace mjp {
namespace {

// "28,462,498"
std::string Grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

template <class Range>
std::string Joined(const Range& range, const char* separator) {
  TextWriter out;
  for (const auto& element : range) out << (out.tellp() > 0 ? separator : "") << element;
  return out.str();
}

std::string Row(const std::string& label, const std::string& text) {
  char line[64];
  std::snprintf(line, sizeof line, "%-14s", label.c_str());
  return line + text + "\n";
}

std::string FeatureRow(const std::string& name, const std::string& shape,
                       const FeatureStats& stats) {
  char line[160];
  std::snprintf(line, sizeof line, "  %-32s %-12s %s\n", name.c_str(), shape.c_str(),
                ModeName(stats.mode).c_str());
  return line;
}

std::string EncoderText(const EncoderConfig& encoder) {
  if (encoder.kind == EncoderKind::kNone) return "none";
  TextWriter out;
  out << (encoder.kind == EncoderKind::kCompact ? "compact " + Joined(encoder.stage_channels, "/")
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

std::string SchedulerText(const SchedulerConfig& scheduler) {
  TextWriter out;
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

std::string TensorTable(const SafetensorsFile& file) {
  std::vector<TensorEntry> tensors = file.tensors();
  std::ranges::sort(tensors, {}, &TensorEntry::name);
  size_t width = 0;
  for (const TensorEntry& tensor : tensors) width = std::max(width, tensor.name.size());
  TextWriter out;
  for (const TensorEntry& tensor : tensors) {
    out << "  " << tensor.name << std::string(width + 2 - tensor.name.size(), ' ') << tensor.dtype
        << " (" << Joined(tensor.shape, ", ") << ")\n";
  }
  return out.str();
}

}  // namespace

std::string InspectCheckpoint(const std::string& directory) {
  const auto checkpoint = LoadCheckpoint(directory);
  const PolicyConfig& config = checkpoint->config;
  TextWriter out;
  out << Row("checkpoint", directory) << Row("type", config.type)
      << Row("sha256", checkpoint->sha256)
      << Row("parameters", Grouped(checkpoint->parameter_count))
      << Row("inputs", std::to_string(config.n_obs_steps) + " observation steps of");
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    const CameraFeature& camera = config.cameras[i];
    out << FeatureRow(camera.name,
                      Joined(std::vector{camera.channels, camera.height, camera.width}, "x"),
                      checkpoint->stats.cameras[i]);
  }
  out << FeatureRow(kStateFeature, std::to_string(config.state_dim), checkpoint->stats.state);
  if (config.environment_dim > 0) {
    out << FeatureRow(kEnvironmentFeature, std::to_string(config.environment_dim),
                      checkpoint->stats.environment);
  }
  out << Row("outputs", "horizon " + std::to_string(config.horizon) + ", executes " +
                            std::to_string(config.n_action_steps) + " from row " +
                            std::to_string(config.FirstAction()) + ", of")
      << FeatureRow(kActionFeature, std::to_string(config.action_dim), checkpoint->stats.action)
      << Row("encoder", EncoderText(config.encoder))
      << Row("U-Net", Joined(config.unet.down_dims, "/") + ", kernel " +
                          std::to_string(config.unet.kernel_size) + ", " +
                          std::to_string(config.unet.groups) + " groups, step embedding " +
                          std::to_string(config.unet.step_embed_dim))
      << Row("sampler", SchedulerText(config.scheduler));
  const SafetensorsFile file = SafetensorsFile::Read(directory + "/model.safetensors");
  out << Row("tensors", std::to_string(file.tensors().size())) << TensorTable(file);
  return out.str();
}

}  // namespace mjp
