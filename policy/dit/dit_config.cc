#include "policy/dit/dit_config.h"

#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/ranges/config_ranges.h"
#include "policy/unet/unet_config.h"

namespace mjp {
namespace {

void ParseTimes(KeyReader& keys, DitConfig& config) {
  RangedKeys numbers(keys, kDitRanges);
  config.n_obs_steps = numbers.Int("n_obs_steps");
  config.horizon = numbers.Int("horizon");
  config.n_action_steps = numbers.IntTo(config.horizon, "n_action_steps");
  if (config.n_action_steps > config.horizon - config.n_obs_steps + 1) {
    throw keys.Bad("n_action_steps", "must be at most horizon - n_obs_steps + 1");
  }
  ParseReplanning(keys, config);
}

void ParseSampler(KeyReader& keys, DitConfig& config) {
  config.objective = keys.Choice<DitObjective>(
      "objective",
      {{"diffusion", DitObjective::kDiffusion}, {"flow_matching", DitObjective::kFlowMatching}},
      "diffusion");
  config.scheduler = ParseScheduler(keys);
  config.integration_steps = RangedKeys(keys, kDitRanges).Int("num_integration_steps", 100);
  config.integration = keys.Choice<SamplerKind>(
      "integration_method", {{"euler", SamplerKind::kEuler}, {"rk4", SamplerKind::kRk4}}, "euler");
}

void ParseTransformer(KeyReader& keys, DitConfig& config) {
  RangedKeys numbers(keys, kDitRanges);
  config.hidden = numbers.Int("hidden_dim");
  config.layers = numbers.Int("num_layers");
  config.heads = numbers.Int("num_heads");
  config.time_embed = numbers.Int("timestep_embed_dim");
  config.rope = keys.Bool("use_rope", true);
  config.rope_base = numbers.Number("rope_base", 10000.0);
  config.position_embedding = keys.Bool("use_positional_encoding", false);
  if (config.hidden % config.heads != 0) throw keys.Bad("num_heads", "must divide hidden_dim");
  if (config.rope && config.hidden / config.heads % 2 != 0) {
    throw keys.Bad("num_heads", "leaves heads of an odd size, which cannot be rotated");
  }
  if (config.time_embed % 2 != 0) throw keys.Bad("timestep_embed_dim", "must be even");
}

void ParsePictures(KeyReader& keys, DitConfig& config) {
  RangedKeys numbers(keys, kDitRanges);
  config.separate_encoders = keys.Bool("use_separate_rgb_encoder_per_camera", false);
  if (keys.Has("image_resize_shape")) {
    const std::vector<int> size = numbers.Ints("image_resize_shape", 2, 2);
    config.resize_height = size[0];
    config.resize_width = size[1];
  }
  if (!keys.Has("image_crop_shape") || config.cameras.empty()) return;
  const std::vector<int> size = numbers.Ints("image_crop_shape", 2, 2);
  // the library drops a crop that does not fit
  if (size[0] > config.PictureHeight() || size[1] > config.PictureWidth()) return;
  config.crop_height = size[0];
  config.crop_width = size[1];
}

void ParseText(KeyReader& keys, DitConfig& config) {
  config.vision_name = keys.Text("vision_encoder_name", "openai/clip-vit-base-patch16");
  config.text_name = keys.Text("text_encoder_name", "openai/clip-vit-base-patch16");
  config.text_tokens = RangedKeys(keys, kDitRanges).Int("tokenizer_max_length", 77);
  if (keys.Text("tokenizer_padding_side", "right") != "right") {
    throw keys.Bad("tokenizer_padding_side", "must be \"right\"");
  }
}

}  // namespace

int DitConfig::PictureHeight() const {
  return crop_height > 0     ? crop_height
         : resize_height > 0 ? resize_height
         : cameras.empty()   ? 0
                             : cameras[0].height;
}

int DitConfig::PictureWidth() const {
  return crop_width > 0     ? crop_width
         : resize_width > 0 ? resize_width
         : cameras.empty()  ? 0
                            : cameras[0].width;
}

DitConfig ParseDitConfig(KeyReader& keys, const std::string& origin, const PolicyConfig& features) {
  DitConfig config;
  static_cast<PolicyConfig&>(config) = features;
  if (config.environment_dim > 0) {
    throw keys.Bad("input_features",
                   "has observation.environment_state, which " + config.type + " does not read");
  }
  if (config.state_dim == 0) throw keys.Bad("input_features", "lack observation.state");
  ParseTimes(keys, config);
  ParseSampler(keys, config);
  ParseTransformer(keys, config);
  if (config.type == kCompactDit) {
    if (config.cameras.empty()) throw keys.Bad("input_features", "lack a picture");
    config.encoder =
        ParseCompactEncoder(keys.Required("compact_encoder"), origin + ": \"compact_encoder\"");
    return config;
  }
  ParsePictures(keys, config);
  ParseText(keys, config);
  if (keys.Bool("use_peft", false)) {
    throw keys.Bad("use_peft", "is true: adapters are not supported; merge them into the weights");
  }
  // of training, or of where LeRobot runs; padding does not reach the token that is read
  keys.Ignore({"device",
               "use_amp",
               "push_to_hub",
               "repo_id",
               "private",
               "tags",
               "license",
               "pretrained_path",
               "pretrained_revision",
               "sigma_min",
               "timestep_sampling_strategy",
               "timestep_sampling_s",
               "timestep_sampling_alpha",
               "timestep_sampling_beta",
               "dropout",
               "vision_encoder_lr_multiplier",
               "image_crop_is_random",
               "tokenizer_padding",
               "tokenizer_truncation",
               "optimizer_lr",
               "optimizer_betas",
               "optimizer_eps",
               "optimizer_weight_decay",
               "scheduler_name",
               "scheduler_warmup_steps",
               "do_mask_loss_for_padding",
               "drop_n_last_frames"});
  return config;
}

void AddDitConfig(const DitConfig& config, Json& json) {
  const auto size = [](int height, int width) {
    return height > 0 ? Json{height, width} : Json(nullptr);
  };
  json["horizon"] = config.horizon;
  AddReplanning(config, json);
  json["objective"] = config.objective == DitObjective::kDiffusion ? "diffusion" : "flow_matching";
  AddScheduler(config.scheduler, json);
  json["num_integration_steps"] = config.integration_steps;
  json["integration_method"] = config.integration == SamplerKind::kEuler ? "euler" : "rk4";
  json["hidden_dim"] = config.hidden;
  json["num_layers"] = config.layers;
  json["num_heads"] = config.heads;
  json["timestep_embed_dim"] = config.time_embed;
  json["use_rope"] = config.rope;
  json["rope_base"] = config.rope_base;
  json["use_positional_encoding"] = config.position_embedding;
  if (config.encoder) {
    json["compact_encoder"] = CompactEncoderJson(*config.encoder);
    return;
  }
  json["use_separate_rgb_encoder_per_camera"] = config.separate_encoders;
  json["image_resize_shape"] = size(config.resize_height, config.resize_width);
  json["image_crop_shape"] = size(config.crop_height, config.crop_width);
  json["vision_encoder_name"] = config.vision_name;
  json["text_encoder_name"] = config.text_name;
  json["tokenizer_max_length"] = config.text_tokens;
}

}  // namespace mjp
