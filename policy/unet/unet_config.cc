#include "policy/unet/unet_config.h"

#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/ranges/config_ranges.h"
#include "policy/scheduler.h"

namespace mjp {
namespace {

// Least share of the signal's variance after all training steps: fp32 divides by its root. The
// squared cosine of 1000 steps leaves 2.4e-9.
constexpr float kLeastSignal = 1e-12f;

EncoderConfig ParseResNet(KeyReader& keys) {
  RangedKeys numbers(keys, kUnetRanges);
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kResNet18;
  keys.Choice<int>("vision_backbone", {{"resnet18", 18}});
  encoder.group_norm = keys.Bool("use_group_norm");
  encoder.separate_per_camera = keys.Bool("use_separate_rgb_encoder_per_camera", false);
  encoder.pool_channels = numbers.Int("spatial_softmax_num_keypoints");
  encoder.feature_dim = 2 * encoder.pool_channels;
  const double ratio = numbers.Number("crop_ratio", 1.0);
  if (keys.Has("crop_shape")) {
    const std::vector<int> crop = numbers.Ints("crop_shape", 2, 2);
    encoder.crop_height = crop[0];
    encoder.crop_width = crop[1];
  }
  if (keys.Has("resize_shape")) {
    const std::vector<int> resize = numbers.Ints("resize_shape", 2, 2);
    encoder.resize_height = resize[0];
    encoder.resize_width = resize[1];
    // as LeRobot derives it: with a resize, the crop follows from the ratio alone
    encoder.crop_height = ratio < 1.0 ? CroppedSide(resize[0], ratio) : 0;
    encoder.crop_width = ratio < 1.0 ? CroppedSide(resize[1], ratio) : 0;
    if (ratio < 1.0 && (encoder.crop_height == 0 || encoder.crop_width == 0)) {
      throw keys.Bad("crop_ratio", "leaves no pixel of resize_shape");
    }
  }
  return encoder;
}

EncoderConfig NotebookEncoder() {
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kResNet18;
  encoder.pool = PoolKind::kAverage;
  encoder.feature_dim = encoder.stage_channels.back();
  encoder.feature_relu = false;
  return encoder;
}

void ParseTimes(KeyReader& keys, UnetPolicyConfig& config) {
  RangedKeys numbers(keys, kUnetRanges);
  config.n_obs_steps = numbers.Int("n_obs_steps");
  config.horizon = numbers.Int("horizon");
  config.n_action_steps = numbers.IntTo(config.horizon, "n_action_steps");
  const int multiple = HorizonMultiple(config.unet);
  if (config.horizon % multiple != 0) {
    throw keys.Bad("horizon", "is " + std::to_string(config.horizon) +
                                  "; it must be a multiple of " + std::to_string(multiple) +
                                  ", 2 to the length of down_dims");
  }
  if (config.n_action_steps > config.horizon - config.n_obs_steps + 1) {
    throw keys.Bad("n_action_steps", "must be at most horizon - n_obs_steps + 1");
  }
  ParseReplanning(keys, config);
}

void CheckPictures(const KeyReader& keys, const UnetPolicyConfig& config) {
  const EncoderConfig& encoder = config.encoder;
  const CameraFeature& camera = config.cameras[0];
  const bool resized = encoder.resize_height > 0;
  if (encoder.crop_height > (resized ? encoder.resize_height : camera.height) ||
      encoder.crop_width > (resized ? encoder.resize_width : camera.width)) {
    throw keys.Bad("crop_shape", "is larger than the pictures");
  }
}

void CheckBetas(const KeyReader& keys, const SchedulerConfig& scheduler) {
  if (scheduler.beta_schedule != BetaSchedule::kLinear) return;
  if (scheduler.beta_start > scheduler.beta_end) {
    throw keys.Bad("beta_start", "is more than beta_end: noise would be added ever more slowly");
  }
  if (AlphasCumprod(scheduler).back() < kLeastSignal) {
    throw keys.Bad("beta_end",
                   "is too large for so many num_train_timesteps: the product of 1 - beta must be "
                   "1e-12 at least, or fp32 divides by nothing");
  }
}

// "sampler" is there in a distilled student alone.
void ParseOneStep(KeyReader& keys, SchedulerConfig& scheduler) {
  if (!keys.Has("sampler")) return;
  scheduler.kind = keys.Choice<SamplerKind>("sampler", {{"onestep", SamplerKind::kOneStep}});
  if (scheduler.prediction != PredictionType::kSample) {
    throw keys.Bad("prediction_type", "must be sample where sampler is onestep");
  }
  if (scheduler.inference_steps != 1) {
    throw keys.Bad("num_inference_steps", "must be 1 where sampler is onestep");
  }
}

EncoderConfig ParseEncoder(KeyReader& keys, const std::string& origin, const std::string& type) {
  if (type == "diffusion_notebook") return NotebookEncoder();
  if (type == "diffusion") return ParseResNet(keys);
  return ParseCompactEncoder(keys.Required("compact_encoder"), origin + ": \"compact_encoder\"");
}

void IgnoreUnused(KeyReader& keys, bool cameras) {
  // of training, of where LeRobot runs, or of pictures that a state policy does not have
  keys.Ignore({"device", "use_amp", "push_to_hub", "repo_id", "private", "tags", "license",
               "pretrained_path", "pretrained_revision", "drop_n_last_frames", "crop_is_random",
               "pretrained_backbone_weights", "gradient_checkpointing", "compile_model",
               "compile_mode", "do_mask_loss_for_padding", "optimizer_lr", "optimizer_betas",
               "optimizer_eps", "optimizer_weight_decay", "scheduler_name",
               "scheduler_warmup_steps",
               // of the averaged weights (2024); a file that holds both sets is refused by its
               // tensors
               "use_ema", "ema_update_after_step", "ema_min_alpha", "ema_max_alpha",
               "ema_inv_gamma", "ema_power"});
  if (cameras) return;
  keys.Ignore({"vision_backbone", "use_group_norm", "use_separate_rgb_encoder_per_camera",
               "spatial_softmax_num_keypoints", "crop_ratio", "crop_shape", "resize_shape"});
}

}  // namespace

int HorizonMultiple(const UnetConfig& unet) { return 1 << unet.down_dims.size(); }

EncoderConfig ParseCompactEncoder(const Json& json, const std::string& where) {
  KeyReader keys(json, where);
  RangedKeys numbers(keys, kCompactRanges);
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kCompact;
  encoder.pool = PoolKind::kFlatten;
  encoder.stem_channels = numbers.Int("stem_channels");
  encoder.stem_kernel = numbers.Int("stem_kernel");
  encoder.stem_stride = numbers.Int("stem_stride");
  encoder.stem_groups = numbers.Int("stem_groups");
  encoder.stem_max_pool = false;
  encoder.stage_channels = numbers.Ints("stage_channels", 1, 8);
  const size_t stages = encoder.stage_channels.size();
  encoder.stage_strides = numbers.Ints("stage_strides", stages, stages);
  encoder.blocks_per_stage = numbers.Int("blocks_per_stage");
  encoder.channels_per_group = numbers.Int("channels_per_group");
  encoder.pool_channels = numbers.Int("pool_channels");
  encoder.feature_dim = numbers.Int("feature_dim");
  encoder.feature_relu = false;
  if (encoder.stem_kernel % 2 == 0) throw keys.Bad("stem_kernel", "must be odd");
  if (encoder.stem_channels % encoder.stem_groups != 0) {
    throw keys.Bad("stem_groups", "must divide stem_channels");
  }
  for (const int channels : encoder.stage_channels) {
    if (channels % encoder.channels_per_group != 0) {
      throw keys.Bad("channels_per_group", "must divide each of stage_channels");
    }
  }
  keys.RejectRest();
  return encoder;
}

void ParseReplanning(KeyReader& keys, PolicyConfig& config) {
  RangedKeys numbers(keys, kReplanningRanges);
  if (keys.Has("replan_every")) {
    config.replan_every = numbers.IntTo(config.n_action_steps, "replan_every");
  }
  config.replan_beyond = numbers.Number("replan_beyond", 0.0);
  if (config.DecidesTooRarely()) {
    throw keys.Bad("replan_beyond",
                   "needs a decision before a chunk has ended: give a replan_every below "
                   "n_action_steps");
  }
}

UnetConfig ParseUnet(KeyReader& keys) {
  RangedKeys numbers(keys, kUnetRanges);
  UnetConfig unet;
  unet.down_dims = numbers.Ints("down_dims", 1, kMostLevels);
  unet.kernel_size = numbers.Int("kernel_size");
  unet.groups = numbers.Int("n_groups");
  unet.step_embed_dim = numbers.Int("diffusion_step_embed_dim");
  unet.film_scale = keys.Bool("use_film_scale_modulation", true);
  if (unet.kernel_size % 2 == 0) throw keys.Bad("kernel_size", "must be odd");
  if (unet.step_embed_dim % 2 != 0) throw keys.Bad("diffusion_step_embed_dim", "must be even");
  for (const int dim : unet.down_dims) {
    if (dim % unet.groups != 0) throw keys.Bad("n_groups", "must divide each of down_dims");
  }
  if (unet.down_dims[0] % 8 != 0) {
    throw keys.Bad("down_dims", "must begin with a multiple of 8, the groups of the last norm");
  }
  return unet;
}

SchedulerConfig ParseScheduler(KeyReader& keys) {
  RangedKeys numbers(keys, kSchedulerRanges);
  SchedulerConfig scheduler;
  scheduler.kind = keys.Choice<SamplerKind>(
      "noise_scheduler_type", {{"DDPM", SamplerKind::kDdpm}, {"DDIM", SamplerKind::kDdim}});
  scheduler.train_steps = numbers.Int("num_train_timesteps");
  scheduler.beta_schedule = keys.Choice<BetaSchedule>(
      "beta_schedule",
      {{"squaredcos_cap_v2", BetaSchedule::kSquaredCosCapV2}, {"linear", BetaSchedule::kLinear}});
  scheduler.beta_start = static_cast<float>(numbers.Number("beta_start", 1e-4));
  scheduler.beta_end = static_cast<float>(numbers.Number("beta_end", 0.02));
  scheduler.prediction = keys.Choice<PredictionType>(
      "prediction_type", {{"epsilon", PredictionType::kEpsilon},
                          {"sample", PredictionType::kSample},
                          {"v_prediction", PredictionType::kVPrediction}});
  scheduler.variance = keys.Choice<VarianceType>(
      "variance_type",
      {{"fixed_small", VarianceType::kFixedSmall}, {"fixed_large", VarianceType::kFixedLarge}},
      "fixed_small");
  scheduler.clip_sample = keys.Bool("clip_sample");
  scheduler.clip_range = static_cast<float>(numbers.Number("clip_sample_range", 1.0));
  scheduler.temperature = static_cast<float>(numbers.Number("temperature", 1.0));
  scheduler.inference_steps =
      numbers.IntTo(scheduler.train_steps, "num_inference_steps", scheduler.train_steps);
  CheckBetas(keys, scheduler);
  return scheduler;
}

UnetPolicyConfig ParseUnetPolicy(KeyReader& keys, const std::string& origin,
                                 const PolicyConfig& features) {
  UnetPolicyConfig config{features, {}, {}, {}, {}};
  const bool lerobot = config.type == "diffusion";
  if (!config.cameras.empty()) {
    config.encoder = ParseEncoder(keys, origin, config.type);
    CheckPictures(keys, config);
  }
  if (config.type == "diffusion_notebook") config.cond_order = CondOrder::kImageState;
  config.unet = ParseUnet(keys);
  ParseTimes(keys, config);
  config.scheduler = ParseScheduler(keys);
  ParseOneStep(keys, config.scheduler);
  config.trained_prefix = keys.Bool("trained_prefix", false);
  if (lerobot && keys.Bool("use_peft", false)) {
    throw keys.Bad("use_peft", "is true: adapters are not supported; merge them into the weights");
  }
  if (lerobot) IgnoreUnused(keys, !config.cameras.empty());
  return config;
}

}  // namespace mjp
