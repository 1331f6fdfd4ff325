#include <array>
#include <string>
#include <utility>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"
#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/random_checkpoint.h"

// ACT and the diffusion transformer at LeRobot's default sizes, with random weights: a decision
// from pictures to a chunk, and its stages.

namespace mjp::app {
namespace {

constexpr int kBatches[] = {1, 64};

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

// Decisions on pictures, or on ready features, as the caller waits for them, and their stages.
// On the CPU one environment alone: many would take minutes.
void AddDecisions(const BenchOptions& options, const std::string& suite, int batch, bool pictures,
                  BenchRows& rows) {
  mjp::PolicyOptions policy_options = options.policy;
  policy_options.batch = batch;
  const auto policy = mjp::Policy::Create(options.network, policy_options);
  const bool gpu = policy->options().backend == mjp::Backend::kCuda;
  if (!gpu && batch > 1) return;
  BenchObservations observations(*options.network, batch);
  mjp::PolicyOutput output;
  std::vector<double> whole;
  std::array<std::vector<double>, mjp::kStageCount> stages;
  const auto decide = [&] {
    const mjp::PolicyInput input = pictures ? observations.Next() : observations.NextChunk();
    const double begin = mjp::Now();
    policy->Infer(input, output);
    whole.push_back(1e3 * (mjp::Now() - begin));
    for (size_t i = 0; i < mjp::kStageCount; ++i) {
      const auto& span = output.times.spans[i];
      if (span.end > span.begin) stages[i].push_back(1e3 * (span.end - span.begin));
    }
  };
  decide();  // captures the graph
  whole.clear(), stages = {};
  Repeat(options, decide);
  const std::string name =
      (pictures ? "picture to chunk, batch " : "features to chunk, batch ") + std::to_string(batch);
  rows.push_back(FromTimes(suite, name, whole));
  rows.back().items = batch;
  rows.back().unit = "chunks";
  rows.back().note = policy->Description();
  for (size_t i = 0; i < mjp::kStageCount; ++i) {
    if (stages[i].empty()) continue;
    const std::string stage = mjp::StageName(static_cast<mjp::Stage>(i));
    rows.push_back(FromTimes(suite, name + ": " + stage, stages[i]));
    rows.back().device = gpu ? "GPU" : "CPU";
  }
}

}  // namespace

BenchRows BenchAct(const BenchOptions& options) {
  BenchOptions own = options;
  own.network = RandomNetwork(kAct, "act");
  BenchRows rows;
  for (const int batch : kBatches) AddDecisions(own, "act", batch, true, rows);
  return rows;
}

BenchRows BenchDit(const BenchOptions& options) {
  BenchOptions own = options;
  own.network = RandomNetwork(kDit, "dit");
  BenchRows rows;
  AddDecisions(own, "dit", kBatches[0], true, rows);
  for (const int batch : kBatches) AddDecisions(own, "dit", batch, false, rows);
  return rows;
}

}  // namespace mjp::app
