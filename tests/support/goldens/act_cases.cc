#include "tests/support/goldens/act_cases.h"

#include <filesystem>
#include <utility>

#include "base/json.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/normalization/statistics.h"
#include "tests/support/goldens/formula_weights.h"

namespace mjp_test {
namespace {

std::shared_ptr<const mjp::Checkpoint> Build(std::shared_ptr<mjp::NetworkModel> network,
                                             const mjp::PolicyConfig& config,
                                             mjp::NormalizerStats stats) {
  auto checkpoint = std::make_shared<mjp::Checkpoint>();
  checkpoint->config = config;
  checkpoint->stats = std::move(stats);
  checkpoint->directory = "(formula weights)";
  FormulaWeights weights;
  checkpoint->parameter_count = network->TakeTensors(weights);
  checkpoint->network = std::move(network);
  return checkpoint;
}

// mean `first` and a standard deviation that grows from element to element
mjp::FeatureStats MeanStd(int dim, float first) {
  mjp::FeatureStats stats{mjp::Normalization::kMeanStd, {}, {}};
  for (int i = 0; i < dim; ++i) {
    stats.first.push_back(first + 0.25f * static_cast<float>(i));
    stats.second.push_back(0.5f + 0.125f * static_cast<float>(i));
  }
  return stats;
}

}  // namespace

mjp::ActPolicyConfig SmallActConfig() {
  mjp::ActPolicyConfig config;
  config.type = "act";
  config.n_obs_steps = 1;
  config.horizon = 6;
  config.n_action_steps = 4;
  config.cameras = {{"observation.images.wrist", 3, 40, 72},
                    {"observation.images.front", 3, 40, 72}};
  config.state_dim = 3;
  config.environment_dim = 2;
  config.action_dim = 3;
  config.width = 24;
  config.heads = 3;
  config.feedforward = 40;
  config.encoder_layers = config.decoder_layers = 2;
  config.latent_dim = 4;
  return config;
}

std::shared_ptr<const mjp::Checkpoint> ActCheckpoint(const mjp::ActPolicyConfig& config) {
  mjp::NormalizerStats stats;
  for (size_t i = 0; i < config.cameras.size(); ++i) {
    const float mean = 0.4f + 0.125f * static_cast<float>(i);
    stats.cameras.push_back(
        {mjp::Normalization::kMeanStd, {mean, 0.5f, 0.45f}, {0.25f, 0.3f, 0.2f}});
  }
  if (config.state_dim > 0) stats.state = MeanStd(config.state_dim, -0.5f);
  stats.action = MeanStd(config.action_dim, 0.25f);
  auto network = std::make_shared<mjp::ActModel>();
  network->config = config;
  return Build(network, config, std::move(stats));
}

std::shared_ptr<const mjp::Checkpoint> StoredActCheckpoint(const std::string& path) {
  mjp::Json stored = mjp::ReadJson(path);
  if (stored.contains("config_of")) {
    const mjp::Json changes = stored.at("config_changes");
    const auto other = "case_" + stored.at("config_of").get<std::string>() + ".json";
    stored = mjp::ReadJson(std::filesystem::path(path).parent_path() / other);
    stored.at("config").update(changes);
  }
  mjp::ConfigFile file = mjp::ParseConfig(stored.at("config"), path);
  const auto lookup = [&](const std::string& feature, const std::string& stat) {
    return stored.at("stats").at(feature).at(stat).get<std::vector<float>>();
  };
  return Build(file.network, file.policy, mjp::CollectStats(file.policy, file.modes, lookup, path));
}

}  // namespace mjp_test
