#include "policy/act/act_config.h"

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "policy/ranges/config_ranges.h"

namespace mjp {
namespace {

// Weights of an ensemble grow to exp(60): fp32 then keeps twelve decades for the actions.
constexpr double kMostGrowth = 60;

void ParseTimes(KeyReader& keys, ActPolicyConfig& config) {
  RangedKeys numbers(keys, kActRanges);
  config.n_obs_steps = numbers.Int("n_obs_steps");
  config.horizon = numbers.Int("chunk_size");
  config.n_action_steps = numbers.IntTo(config.horizon, "n_action_steps");
  if (keys.Has("temporal_ensemble_momentum")) {
    throw keys.Bad("temporal_ensemble_momentum",
                   "is the moving average of LeRobot before July 2024; set it to null, and "
                   "temporal_ensemble_coeff to the coefficient that is wanted");
  }
  if (!keys.Has("temporal_ensemble_coeff")) return;
  config.temporal_ensemble = numbers.Number("temporal_ensemble_coeff");
  if (-*config.temporal_ensemble * (config.horizon - 1) > kMostGrowth) {
    throw keys.Bad("temporal_ensemble_coeff",
                   "makes weights exp(-m i) that overflow within chunk_size; -m (chunk_size - 1) "
                   "is at most 60");
  }
  if (config.n_action_steps != 1) {
    throw keys.Bad("n_action_steps",
                   "must be 1 with temporal_ensemble_coeff: every control step makes a chunk");
  }
}

void ParseBackbone(KeyReader& keys, ActPolicyConfig& config) {
  config.resnet = keys.Choice<int>("vision_backbone", {{"resnet18", 18}, {"resnet34", 34}});
  // an integer in files of 2024
  const Json* dilation = keys.Find("replace_final_stride_with_dilation");
  const bool none = dilation == nullptr || *dilation == false || *dilation == 0;
  if (!none) {
    throw keys.Bad("replace_final_stride_with_dilation",
                   "must be false: the basic blocks of ResNet-18 and -34 have no dilation");
  }
}

void ParseTransformer(KeyReader& keys, ActPolicyConfig& config) {
  RangedKeys numbers(keys, kActRanges);
  config.pre_norm = keys.Bool("pre_norm");
  config.width = numbers.Int("dim_model");
  config.heads = numbers.Int("n_heads");
  config.feedforward = numbers.Int("dim_feedforward");
  config.activation = keys.Choice<TokenActivation>(
      "feedforward_activation",
      {{"relu", TokenActivation::kRelu}, {"gelu", TokenActivation::kGeluErf}});
  config.encoder_layers = numbers.Int("n_encoder_layers");
  config.decoder_layers = numbers.Int("n_decoder_layers");
  config.vae = keys.Bool("use_vae");
  config.latent_dim = numbers.Int("latent_dim");
  config.vae_layers = numbers.Int("n_vae_encoder_layers", 4);
  if (config.width % config.heads != 0) throw keys.Bad("n_heads", "must divide dim_model");
  if (config.width % 4 != 0) {
    throw keys.Bad("dim_model", "must be a multiple of 4: sine and cosine for two axes");
  }
}

}  // namespace

ActPolicyConfig ParseActPolicy(KeyReader& keys, const PolicyConfig& features) {
  ActPolicyConfig config;
  static_cast<PolicyConfig&>(config) = features;
  ParseTimes(keys, config);
  ParseBackbone(keys, config);
  ParseTransformer(keys, config);
  if (keys.Bool("use_peft", false)) {
    throw keys.Bad("use_peft", "is true: adapters are not supported; merge them into the weights");
  }
  // of training, or of where LeRobot runs
  keys.Ignore({"device", "use_amp", "push_to_hub", "repo_id", "private", "tags", "license",
               "pretrained_path", "pretrained_revision", "pretrained_backbone_weights", "dropout",
               "kl_weight", "optimizer_lr", "optimizer_weight_decay", "optimizer_lr_backbone",
               "temporal_ensemble_momentum"});
  return config;
}

void AddActPolicy(const ActPolicyConfig& config, Json& json) {
  json["chunk_size"] = config.horizon;
  json["vision_backbone"] = "resnet" + std::to_string(config.resnet);
  json["pretrained_backbone_weights"] = nullptr;
  json["replace_final_stride_with_dilation"] = false;
  json["pre_norm"] = config.pre_norm;
  json["dim_model"] = config.width;
  json["n_heads"] = config.heads;
  json["dim_feedforward"] = config.feedforward;
  json["feedforward_activation"] = config.activation == TokenActivation::kGeluErf ? "gelu" : "relu";
  json["n_encoder_layers"] = config.encoder_layers;
  json["n_decoder_layers"] = config.decoder_layers;
  json["use_vae"] = config.vae;
  json["latent_dim"] = config.latent_dim;
  json["n_vae_encoder_layers"] = config.vae_layers;
  json["temporal_ensemble_coeff"] =
      config.temporal_ensemble ? Json(*config.temporal_ensemble) : Json(nullptr);
}

}  // namespace mjp
