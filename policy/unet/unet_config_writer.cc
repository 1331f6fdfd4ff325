#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "policy/unet/unet_config.h"

namespace mjp {
namespace {

// [height, width], or null where there is no such step
Json SizeOrNull(int height, int width) { return height > 0 ? Json{height, width} : Json(nullptr); }

void AddResNet(const EncoderConfig& encoder, Json& json) {
  const Json resize = SizeOrNull(encoder.resize_height, encoder.resize_width);
  Json crop = SizeOrNull(encoder.crop_height, encoder.crop_width);
  const std::optional<double> ratio = CropRatio(encoder);
  if (!ratio) {
    throw BadInput("no crop_ratio gives a crop of " + crop.dump() + " of pictures resized to " +
                   resize.dump() + "; crop the same share of both sides");
  }
  if (!resize.is_null() && *ratio == 1) crop = nullptr;  // it is the whole picture
  json["vision_backbone"] = "resnet18";
  json["resize_shape"] = resize;
  json["crop_ratio"] = *ratio;
  json["crop_shape"] = crop;
  json["crop_is_random"] = !crop.is_null();
  json["pretrained_backbone_weights"] = nullptr;
  json["use_group_norm"] = encoder.group_norm;
  json["spatial_softmax_num_keypoints"] = encoder.pool_channels;
  json["use_separate_rgb_encoder_per_camera"] = encoder.separate_per_camera;
}

}  // namespace

std::optional<double> CropRatio(const EncoderConfig& encoder) {
  const int rows = encoder.resize_height, columns = encoder.resize_width;
  const int height = encoder.crop_height, width = encoder.crop_width;
  if (rows == 0 || height == 0 || (height == rows && width == columns)) return 1;
  // the middle of the ratios that give both sides: furthest from where rounding decides
  const double least = std::max(1.0 * height / rows, 1.0 * width / columns);
  const double most = std::min((height + 1.0) / rows, (width + 1.0) / columns);
  const double ratio = (least + most) / 2;
  const bool gives = CroppedSide(rows, ratio) == height && CroppedSide(columns, ratio) == width;
  if (!gives || ratio >= 1) return std::nullopt;
  return ratio;
}

Json CompactEncoderJson(const EncoderConfig& encoder) {
  return {{"stem_channels", encoder.stem_channels},
          {"stem_kernel", encoder.stem_kernel},
          {"stem_stride", encoder.stem_stride},
          {"stem_groups", encoder.stem_groups},
          {"stage_channels", encoder.stage_channels},
          {"stage_strides", encoder.stage_strides},
          {"blocks_per_stage", encoder.blocks_per_stage},
          {"channels_per_group", encoder.channels_per_group},
          {"pool_channels", encoder.pool_channels},
          {"feature_dim", encoder.feature_dim}};
}

void AddReplanning(const PolicyConfig& config, Json& json) {
  if (config.replan_every > 0) json["replan_every"] = config.replan_every;
  if (config.replan_beyond > 0) json["replan_beyond"] = config.replan_beyond;
}

void AddUnet(const UnetConfig& unet, Json& json) {
  json["down_dims"] = unet.down_dims;
  json["kernel_size"] = unet.kernel_size;
  json["n_groups"] = unet.groups;
  json["diffusion_step_embed_dim"] = unet.step_embed_dim;
  json["use_film_scale_modulation"] = unet.film_scale;
}

void AddScheduler(const SchedulerConfig& scheduler, Json& json) {
  json["noise_scheduler_type"] = scheduler.kind == SamplerKind::kDdpm ? "DDPM" : "DDIM";
  json["num_train_timesteps"] = scheduler.train_steps;
  json["beta_schedule"] =
      scheduler.beta_schedule == BetaSchedule::kLinear ? "linear" : "squaredcos_cap_v2";
  json["beta_start"] = ShortestDouble(scheduler.beta_start);
  json["beta_end"] = ShortestDouble(scheduler.beta_end);
  json["prediction_type"] = scheduler.prediction == PredictionType::kEpsilon  ? "epsilon"
                            : scheduler.prediction == PredictionType::kSample ? "sample"
                                                                              : "v_prediction";
  // LeRobot has no such key, and only the default
  if (scheduler.variance == VarianceType::kFixedLarge) json["variance_type"] = "fixed_large";
  json["clip_sample"] = scheduler.clip_sample;
  json["clip_sample_range"] = ShortestDouble(scheduler.clip_range);
  json["num_inference_steps"] = scheduler.inference_steps;
  if (scheduler.kind == SamplerKind::kOneStep) json["sampler"] = "onestep";
  if (scheduler.temperature != 1) json["temperature"] = ShortestDouble(scheduler.temperature);
}

void AddUnetPolicy(const UnetPolicyConfig& config, Json& json) {
  json["horizon"] = config.horizon;
  AddReplanning(config, json);
  if (config.type == "diffusion" && !config.cameras.empty()) AddResNet(config.encoder, json);
  if (config.encoder.kind == EncoderKind::kCompact) {
    json["compact_encoder"] = CompactEncoderJson(config.encoder);
  }
  AddUnet(config.unet, json);
  AddScheduler(config.scheduler, json);
  if (config.trained_prefix) json["trained_prefix"] = true;
}

}  // namespace mjp
