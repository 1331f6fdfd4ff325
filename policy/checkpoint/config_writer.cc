#include <string>

#include "base/error.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalization/statistics.h"

namespace mjp {
namespace {

Json Feature(const char* type, std::initializer_list<int> shape) {
  return {{"type", type}, {"shape", shape}};
}

Json NormalizationMapping(const PolicyConfig& config, const NormalizerStats& stats) {
  Json mapping = Json::object();
  if (!config.cameras.empty()) mapping["VISUAL"] = ModeName(stats.cameras[0].mode);
  mapping["STATE"] = ModeName(stats.state.mode);
  if (config.environment_dim > 0) mapping["ENV"] = ModeName(stats.environment.mode);
  mapping["ACTION"] = ModeName(stats.action.mode);
  return mapping;
}

}  // namespace

Json ConfigToJson(const Checkpoint& checkpoint) {
  const PolicyConfig& config = checkpoint.config;
  Json json = {{"type", config.type}, {"n_obs_steps", config.n_obs_steps}};
  Json& inputs = json["input_features"] = Json::object();
  for (const CameraFeature& camera : config.cameras) {
    inputs[camera.name] = Feature("VISUAL", {camera.channels, camera.height, camera.width});
  }
  inputs[kStateFeature] = Feature("STATE", {config.state_dim});
  if (config.environment_dim > 0) {
    inputs[kEnvironmentFeature] = Feature("ENV", {config.environment_dim});
  }
  json["output_features"] = {{kActionFeature, Feature("ACTION", {config.action_dim})}};
  json["normalization_mapping"] = NormalizationMapping(config, checkpoint.stats);
  json["n_action_steps"] = config.n_action_steps;
  checkpoint.network->AddConfig(json);
  return json;
}

}  // namespace mjp
