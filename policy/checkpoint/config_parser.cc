#include "policy/checkpoint/config_parser.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/key_reader.h"
#include "policy/checkpoint/network_builder.h"

namespace mjp {
namespace {

constexpr int kMaxDim = 8192;
constexpr int kMaxCameras = 16;
constexpr int kMaxSteps = 1000;

enum class FeatureType { kVisual, kState, kEnvironment, kAction };

// LeRobot's types of features, those without an input here included.
constexpr const char* kFeatureTypes[] = {"VISUAL", "STATE", "ENV", "ACTION", "REWARD", "LANGUAGE"};

void SetMode(const std::map<std::string, Normalization>& mapping, const std::string& name,
             const char* type, FeatureModes& modes) {
  if (const std::optional<Normalization> mode = ModeOfType(mapping, type)) modes[name] = *mode;
}

int VectorSize(KeyReader& feature) { return feature.Ints("shape", 1, 1, 1, kMaxDim)[0]; }

void AddCamera(PolicyConfig& config, const std::string& name, KeyReader& feature) {
  const std::vector<int> shape = feature.Ints("shape", 3, 3, 1, kMaxDim);
  if (shape[0] != 3) throw feature.Bad("shape", "must be [3, height, width]: RGB, channels first");
  if (config.cameras.size() == kMaxCameras) throw feature.Bad("shape", "is that of a 17th camera");
  const CameraFeature camera{name, shape[0], shape[1], shape[2]};
  if (!config.cameras.empty() &&
      (camera.height != config.cameras[0].height || camera.width != config.cameras[0].width)) {
    throw feature.Bad("shape", "differs from the first camera's; all pictures must have one size");
  }
  config.cameras.push_back(camera);
}

// One input feature; `type` is what the file or, in the oldest layout, the name says it is.
void AddInput(PolicyConfig& config, const std::string& name, FeatureType type, KeyReader& feature) {
  if (type == FeatureType::kVisual) {
    AddCamera(config, name, feature);
  } else if (type == FeatureType::kState && name == kStateFeature) {
    config.state_dim = VectorSize(feature);
  } else if (type == FeatureType::kEnvironment && name == kEnvironmentFeature) {
    config.environment_dim = VectorSize(feature);
  } else {
    throw feature.Bad("type", std::string("does not fit the name; supported inputs are cameras, ") +
                                  kStateFeature + " (STATE) and " + kEnvironmentFeature + " (ENV)");
  }
}

void ParseFeatures(KeyReader& keys, const std::string& origin, ConfigFile& out) {
  const std::map<std::string, Normalization> mapping =
      ParseModes(keys, "normalization_mapping", origin);
  const Json& inputs = keys.Required("input_features");
  if (!inputs.is_object()) throw keys.Bad("input_features", "must be an object");
  for (const auto& [name, value] : inputs.items()) {
    KeyReader feature(value, origin + ": \"input_features\": " + name);
    const auto type = feature.Choice<FeatureType>("type", {{"VISUAL", FeatureType::kVisual},
                                                           {"STATE", FeatureType::kState},
                                                           {"ENV", FeatureType::kEnvironment}});
    AddInput(out.policy, name, type, feature);
    feature.RejectRest();
    const char* text = type == FeatureType::kVisual  ? "VISUAL"
                       : type == FeatureType::kState ? "STATE"
                                                     : "ENV";
    SetMode(mapping, name, text, out.modes);
  }
  const Json& outputs = keys.Required("output_features");
  KeyReader output_keys(outputs, origin + ": \"output_features\"");
  KeyReader action(output_keys.Required(kActionFeature), origin + ": \"output_features\": action");
  action.Choice<FeatureType>("type", {{"ACTION", FeatureType::kAction}});
  out.policy.action_dim = VectorSize(action);
  action.RejectRest();
  output_keys.RejectRest();
  SetMode(mapping, kActionFeature, "ACTION", out.modes);
}

// LeRobot in 2024: shapes and modes by feature name, no types.
void ParseOldestFeatures(KeyReader& keys, const std::string& origin, ConfigFile& out) {
  const auto read = [&](const char* shapes, const char* modes, auto&& add) {
    const Json& shape_of = keys.Required(shapes);
    const Json& mode_of = keys.Required(modes);
    if (!shape_of.is_object()) throw keys.Bad(shapes, "must be an object");
    KeyReader mode_keys(mode_of, origin + ": \"" + modes + "\"");
    for (const auto& [name, shape] : shape_of.items()) {
      const Json wrapped = {{"shape", shape}};
      KeyReader feature(wrapped, origin + ": \"" + shapes + "\": " + name);
      add(name, feature);
      out.modes[name] =
          ParseNormalization(mode_keys.Required(name), origin + ": \"" + modes + "\": " + name);
    }
    mode_keys.RejectRest();
  };
  read("input_shapes", "input_normalization_modes", [&](const std::string& name, KeyReader& f) {
    const FeatureType type = name == kStateFeature         ? FeatureType::kState
                             : name == kEnvironmentFeature ? FeatureType::kEnvironment
                                                           : FeatureType::kVisual;
    AddInput(out.policy, name, type, f);
  });
  read("output_shapes", "output_normalization_modes", [&](const std::string& name, KeyReader& f) {
    if (name != kActionFeature) throw f.Bad("shape", "is of an output other than \"action\"");
    out.policy.action_dim = VectorSize(f);
  });
}

EncoderConfig ParseResNet(KeyReader& keys) {
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kResNet18;
  keys.Choice<int>("vision_backbone", {{"resnet18", 18}});
  encoder.group_norm = keys.Bool("use_group_norm");
  encoder.separate_per_camera = keys.Bool("use_separate_rgb_encoder_per_camera", false);
  encoder.pool_channels = keys.Int("spatial_softmax_num_keypoints", 1, kMaxDim / 2);
  encoder.feature_dim = 2 * encoder.pool_channels;
  const double ratio = keys.Number("crop_ratio", 1e-3, 1.0, 1.0);
  if (keys.Has("crop_shape")) {
    const std::vector<int> crop = keys.Ints("crop_shape", 2, 2, 1, kMaxDim);
    encoder.crop_height = crop[0];
    encoder.crop_width = crop[1];
  }
  if (keys.Has("resize_shape")) {
    const std::vector<int> resize = keys.Ints("resize_shape", 2, 2, 1, kMaxDim);
    encoder.resize_height = resize[0];
    encoder.resize_width = resize[1];
    // as LeRobot derives it: with a resize, the crop follows from the ratio alone
    encoder.crop_height = ratio < 1.0 ? static_cast<int>(resize[0] * ratio) : 0;
    encoder.crop_width = ratio < 1.0 ? static_cast<int>(resize[1] * ratio) : 0;
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

EncoderConfig ParseCompact(const Json& json, const std::string& where) {
  KeyReader keys(json, where);
  EncoderConfig encoder;
  encoder.kind = EncoderKind::kCompact;
  encoder.pool = PoolKind::kFlatten;
  encoder.stem_channels = keys.Int("stem_channels", 1, kMaxDim);
  encoder.stem_kernel = keys.Int("stem_kernel", 1, 15);
  encoder.stem_stride = keys.Int("stem_stride", 1, 8);
  encoder.stem_groups = keys.Int("stem_groups", 1, kMaxDim);
  encoder.stem_max_pool = false;
  encoder.stage_channels = keys.Ints("stage_channels", 1, 8, 1, kMaxDim);
  const size_t stages = encoder.stage_channels.size();
  encoder.stage_strides = keys.Ints("stage_strides", stages, stages, 1, 8);
  encoder.blocks_per_stage = keys.Int("blocks_per_stage", 1, 16);
  encoder.channels_per_group = keys.Int("channels_per_group", 1, kMaxDim);
  encoder.pool_channels = keys.Int("pool_channels", 1, kMaxDim);
  encoder.feature_dim = keys.Int("feature_dim", 1, kMaxDim);
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

void ParseTimes(KeyReader& keys, PolicyConfig& config) {
  config.n_obs_steps = keys.Int("n_obs_steps", 1, 64);
  config.horizon = keys.Int("horizon", 1, 4096);
  config.n_action_steps = keys.Int("n_action_steps", 1, config.horizon);
  const int levels = static_cast<int>(config.unet.down_dims.size());
  if (config.horizon % (1 << levels) != 0) {
    throw keys.Bad("horizon", "is " + std::to_string(config.horizon) +
                                  "; it must be a multiple of " + std::to_string(1 << levels) +
                                  ", 2 to the length of down_dims");
  }
  if (config.n_action_steps > config.horizon - config.n_obs_steps + 1) {
    throw keys.Bad("n_action_steps", "must be at most horizon - n_obs_steps + 1");
  }
}

void CheckPictures(const KeyReader& keys, const PolicyConfig& config) {
  const EncoderConfig& encoder = config.encoder;
  const CameraFeature& camera = config.cameras[0];
  const bool resized = encoder.resize_height > 0;
  if (encoder.crop_height > (resized ? encoder.resize_height : camera.height) ||
      encoder.crop_width > (resized ? encoder.resize_width : camera.width)) {
    throw keys.Bad("crop_shape", "is larger than the pictures");
  }
}

}  // namespace

UnetConfig ParseUnet(KeyReader& keys) {
  UnetConfig unet;
  unet.down_dims = keys.Ints("down_dims", 1, 8, 8, kMaxDim);
  unet.kernel_size = keys.Int("kernel_size", 1, 15);
  unet.groups = keys.Int("n_groups", 1, kMaxDim);
  unet.step_embed_dim = keys.Int("diffusion_step_embed_dim", 4, kMaxDim);
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
  SchedulerConfig scheduler;
  scheduler.kind = keys.Choice<SamplerKind>(
      "noise_scheduler_type", {{"DDPM", SamplerKind::kDdpm}, {"DDIM", SamplerKind::kDdim}});
  scheduler.train_steps = keys.Int("num_train_timesteps", 1, kMaxSteps);
  scheduler.beta_schedule = keys.Choice<BetaSchedule>(
      "beta_schedule",
      {{"squaredcos_cap_v2", BetaSchedule::kSquaredCosCapV2}, {"linear", BetaSchedule::kLinear}});
  scheduler.beta_start = static_cast<float>(keys.Number("beta_start", 1e-12, 0.999, 1e-4));
  scheduler.beta_end = static_cast<float>(keys.Number("beta_end", 1e-12, 0.999, 0.02));
  scheduler.prediction = keys.Choice<PredictionType>(
      "prediction_type", {{"epsilon", PredictionType::kEpsilon},
                          {"sample", PredictionType::kSample},
                          {"v_prediction", PredictionType::kVPrediction}});
  scheduler.variance = keys.Choice<VarianceType>(
      "variance_type",
      {{"fixed_small", VarianceType::kFixedSmall}, {"fixed_large", VarianceType::kFixedLarge}},
      "fixed_small");
  scheduler.clip_sample = keys.Bool("clip_sample");
  scheduler.clip_range = static_cast<float>(keys.Number("clip_sample_range", 1e-6, 1e6, 1.0));
  scheduler.inference_steps =
      keys.Int("num_inference_steps", 1, scheduler.train_steps, scheduler.train_steps);
  return scheduler;
}

Normalization ParseNormalization(const Json& value, const std::string& where) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  if (text == "IDENTITY") return Normalization::kIdentity;
  if (text == "MEAN_STD") return Normalization::kMeanStd;
  if (text == "MIN_MAX") return Normalization::kMinMax;
  if (text == "QUANTILES") return Normalization::kQuantiles;
  if (text == "QUANTILE10") return Normalization::kQuantile10;
  throw Unsupported(where + " is " + value.dump() +
                    "; supported are: IDENTITY, MEAN_STD, MIN_MAX, QUANTILES, QUANTILE10");
}

std::map<std::string, Normalization> ParseModes(KeyReader& keys, const std::string& key,
                                                const std::string& where) {
  const Json& object = keys.Required(key);
  if (!object.is_object()) throw keys.Bad(key, "must be an object");
  std::map<std::string, Normalization> modes;
  for (const auto& [type, mode] : object.items()) {
    std::string known;
    for (const char* each : kFeatureTypes) known += std::string(known.empty() ? "" : ", ") + each;
    if (std::ranges::find(kFeatureTypes, type) == std::end(kFeatureTypes)) {
      throw keys.Bad(key,
                     "names \"" + type + "\", which is no type of feature; there are " + known);
    }
    modes[type] = ParseNormalization(mode, where + ": \"" + key + "\": " + type);
  }
  return modes;
}

std::optional<Normalization> ModeOfType(const std::map<std::string, Normalization>& modes,
                                        const std::string& type) {
  const auto found = modes.find(type);
  if (found != modes.end()) return found->second;
  if (type == "STATE" || type == "ACTION") return std::nullopt;
  return Normalization::kIdentity;
}

ConfigFile ParseConfig(const Json& json, const std::string& origin) {
  KeyReader keys(json, origin);
  ConfigFile file;
  PolicyConfig& config = file.policy;
  const bool oldest = !keys.Has("type") && keys.Has("input_shapes");
  config.type = oldest ? "diffusion" : keys.Text("type");
  const auto kind = KeyReader(json, origin)
                        .Choice<EncoderKind>("type",
                                             {{"diffusion", EncoderKind::kResNet18},
                                              {"diffusion_compact", EncoderKind::kCompact},
                                              {"diffusion_notebook", EncoderKind::kResNet18}},
                                             "diffusion");
  const bool lerobot = config.type == "diffusion";
  if (oldest) {
    ParseOldestFeatures(keys, origin, file);
  } else {
    ParseFeatures(keys, origin, file);
  }
  if (!config.cameras.empty()) {
    config.encoder = kind == EncoderKind::kCompact ? ParseCompact(keys.Required("compact_encoder"),
                                                                  origin + ": \"compact_encoder\"")
                     : lerobot                     ? ParseResNet(keys)
                                                   : NotebookEncoder();
    CheckPictures(keys, config);
  }
  if (config.type == "diffusion_notebook") config.cond_order = CondOrder::kImageState;
  if (config.state_dim == 0) {
    throw keys.Bad("input_features", std::string("lack ") + kStateFeature);
  }
  config.unet = ParseUnet(keys);
  ParseTimes(keys, config);
  config.scheduler = ParseScheduler(keys);
  if (lerobot && keys.Bool("use_peft", false)) {
    throw keys.Bad("use_peft", "is true: adapters are not supported; merge them into the weights");
  }
  if (lerobot) {
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
    if (config.cameras.empty()) {
      keys.Ignore({"vision_backbone", "use_group_norm", "use_separate_rgb_encoder_per_camera",
                   "spatial_softmax_num_keypoints", "crop_ratio", "crop_shape", "resize_shape"});
    }
  }
  keys.RejectRest();
  return file;
}

}  // namespace mjp
