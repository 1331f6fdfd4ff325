#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// The old layout of config.json has a mode for each feature, the one that is written one for each
// type of feature.
void CheckOneModeOfPictures(const Checkpoint& checkpoint) {
  const std::vector<FeatureStats>& stats = checkpoint.stats.cameras;
  for (size_t i = 1; i < stats.size(); ++i) {
    if (stats[i].mode == stats[0].mode) continue;
    const std::vector<CameraFeature>& cameras = checkpoint.config.cameras;
    throw BadInput("no checkpoint is written: config.json has one mode for all pictures, and \"" +
                   cameras[i].name + "\" has " + ModeName(stats[i].mode) + ", \"" +
                   cameras[0].name + "\" " + ModeName(stats[0].mode) +
                   "; give all pictures one mode");
  }
}

using NamedShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// The tensors that inference reads.
NamedShapes ShapesOf(const NetworkModel& network) {
  class Any : public TensorSource {
   public:
    Tensor Take(const std::string&, const std::vector<int64_t>& shape) override {
      return {shape, {}};
    }
    void Discard(const std::string&) override {}
  };
  NamedShapes shapes;
  network.ListTensors(
      Any(), [&](const std::string& name, const std::vector<int64_t>& shape, TensorRole role) {
        if (role == TensorRole::kNeeded) shapes.emplace_back(name, shape);
      });
  return shapes;
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

void CheckReadsBack(const Checkpoint& checkpoint) {
  CheckOneModeOfPictures(checkpoint);
  const Json written = ConfigToJson(checkpoint);
  const ConfigFile file = ParseConfig(written, "config.json of the policy to be written");
  Checkpoint read;
  read.config = file.policy;
  read.stats = checkpoint.stats;
  read.network = file.network;
  const Json again = ConfigToJson(read);
  for (const auto& [key, value] : written.items()) {
    if (again.contains(key) && again[key] == value) continue;
    throw BadInput("no checkpoint is written: config.json would have \"" + key +
                   "\": " + value.dump() + " and be read as " + again.value(key, Json()).dump());
  }
  // a network that reads text has the sizes of its towers in its tensors alone
  if (checkpoint.network->text_tokens() > 0) return;
  const NamedShapes shapes = ShapesOf(*checkpoint.network), asked = ShapesOf(*file.network);
  if (shapes == asked) return;
  const auto odd = std::ranges::mismatch(shapes, asked).in1;
  throw BadInput("no checkpoint is written: config.json cannot say the shape of this network" +
                 (odd == shapes.end() ? "" : ", as of tensor \"" + odd->first + "\""));
}

}  // namespace mjp
