#include "apps/bench/default_networks.h"

#include <string>

#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/random_checkpoint.h"

namespace mjp::app {
namespace {

mjp::FeatureStats Unit(int dim) {
  return {mjp::Normalization::kMeanStd, std::vector<float>(dim, 0.0f),
          std::vector<float>(dim, 1.0f)};
}

std::shared_ptr<const mjp::Checkpoint> RandomNetwork(const char* config, const std::string& name) {
  mjp::ConfigFile file = mjp::ParseConfig(mjp::Json::parse(config), name);
  mjp::NormalizerStats stats;
  for (const mjp::CameraFeature& camera : file.policy.cameras)
    stats.cameras.push_back(Unit(camera.channels));
  stats.state = Unit(file.policy.state_dim);
  stats.action = Unit(file.policy.action_dim);
  const auto weights = mjp::MakeRandomSource(0);
  return mjp::MadeCheckpoint(file.policy, stats, file.network, *weights, name);
}

// LeRobot's defaults, one camera of 480x640.
constexpr char kAct[] = R"({"type": "act", "n_obs_steps": 1,
  "input_features": {"observation.images.top": {"type": "VISUAL", "shape": [3, 480, 640]},
                     "observation.state": {"type": "STATE", "shape": [14]}},
  "output_features": {"action": {"type": "ACTION", "shape": [14]}},
  "normalization_mapping": {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"},
  "chunk_size": 100, "n_action_steps": 100, "vision_backbone": "resnet18",
  "replace_final_stride_with_dilation": false, "pre_norm": false, "dim_model": 512, "n_heads": 8,
  "dim_feedforward": 3200, "feedforward_activation": "relu", "n_encoder_layers": 4,
  "n_decoder_layers": 1, "use_vae": true, "latent_dim": 32, "n_vae_encoder_layers": 4,
  "temporal_ensemble_coeff": null})";

// LeRobot's defaults, one camera of 96x96.
constexpr char kDit[] = R"({"type": "multi_task_dit", "n_obs_steps": 2,
  "input_features": {"observation.image": {"type": "VISUAL", "shape": [3, 96, 96]},
                     "observation.state": {"type": "STATE", "shape": [2]}},
  "output_features": {"action": {"type": "ACTION", "shape": [2]}},
  "normalization_mapping": {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"},
  "horizon": 32, "n_action_steps": 24, "objective": "diffusion", "noise_scheduler_type": "DDPM",
  "num_train_timesteps": 100, "beta_schedule": "squaredcos_cap_v2", "beta_start": 0.0001,
  "beta_end": 0.02, "prediction_type": "epsilon", "clip_sample": true, "clip_sample_range": 1.0,
  "num_inference_steps": null, "num_integration_steps": 100, "integration_method": "euler",
  "hidden_dim": 512, "num_layers": 6, "num_heads": 8, "use_positional_encoding": false,
  "timestep_embed_dim": 256, "use_rope": true, "rope_base": 10000.0,
  "vision_encoder_name": "openai/clip-vit-base-patch16",
  "use_separate_rgb_encoder_per_camera": false, "image_resize_shape": [224, 224],
  "image_crop_shape": [224, 224], "text_encoder_name": "openai/clip-vit-base-patch16",
  "tokenizer_max_length": 77, "tokenizer_padding": "max_length", "tokenizer_padding_side": "right",
  "tokenizer_truncation": true})";

}  // namespace

std::shared_ptr<const mjp::Checkpoint> DefaultAct() { return RandomNetwork(kAct, "act"); }

std::shared_ptr<const mjp::Checkpoint> DefaultDit() { return RandomNetwork(kDit, "dit"); }

}  // namespace mjp::app
