#include "policy/act/act_config.h"

#include <string>

#include "base/error.h"

namespace mjp {
namespace {

constexpr int kMaxDim = 8192;
constexpr int kMaxLayers = 64;

void ParseTimes(KeyReader& keys, ActPolicyConfig& config) {
  config.n_obs_steps = keys.Int("n_obs_steps", 1, 1);
  config.horizon = keys.Int("chunk_size", 1, 4096);
  config.n_action_steps = keys.Int("n_action_steps", 1, config.horizon);
  if (keys.Has("temporal_ensemble_momentum")) {
    throw keys.Bad("temporal_ensemble_momentum",
                   "is the moving average of LeRobot before July 2024; set it to null, and "
                   "temporal_ensemble_coeff to the coefficient that is wanted");
  }
  if (!keys.Has("temporal_ensemble_coeff")) return;
  config.temporal_ensemble = keys.Number("temporal_ensemble_coeff", -10, 10);
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
  config.pre_norm = keys.Bool("pre_norm");
  config.width = keys.Int("dim_model", 4, kMaxDim);
  config.heads = keys.Int("n_heads", 1, config.width);
  config.feedforward = keys.Int("dim_feedforward", 1, 4 * kMaxDim);
  config.activation = keys.Choice<TokenActivation>(
      "feedforward_activation",
      {{"relu", TokenActivation::kRelu}, {"gelu", TokenActivation::kGeluErf}});
  config.encoder_layers = keys.Int("n_encoder_layers", 1, kMaxLayers);
  config.decoder_layers = keys.Int("n_decoder_layers", 1, kMaxLayers);
  config.vae = keys.Bool("use_vae");
  config.latent_dim = keys.Int("latent_dim", 1, kMaxDim);
  config.vae_layers = keys.Int("n_vae_encoder_layers", 1, kMaxLayers, 4);
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
