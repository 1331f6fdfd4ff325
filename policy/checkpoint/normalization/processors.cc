#include "policy/checkpoint/normalization/processors.h"

#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/key_reader.h"
#include "policy/checkpoint/normalization/statistics.h"

namespace mjp {
namespace {

constexpr uint64_t kMaxStats = uint64_t{16} << 20;  // bytes of a file of statistics

// What config.json says about a feature.
struct KnownFeature {
  const char* type;
  std::vector<int> shape;
};

std::optional<KnownFeature> FindFeature(const PolicyConfig& config, const std::string& name) {
  for (const CameraFeature& camera : config.cameras) {
    if (camera.name == name) {
      return KnownFeature{"VISUAL", {camera.channels, camera.height, camera.width}};
    }
  }
  if (name == kStateFeature) return KnownFeature{"STATE", {config.state_dim}};
  if (name == kActionFeature) return KnownFeature{"ACTION", {config.action_dim}};
  if (name == kEnvironmentFeature && config.environment_dim > 0) {
    return KnownFeature{"ENV", {config.environment_dim}};
  }
  return std::nullopt;
}

// A feature of a step must be config.json's: another shape or type is of another policy.
void CheckFeature(const std::string& name, const Json& value, const PolicyConfig& config,
                  const std::string& where) {
  KeyReader feature(value, where + ": \"features\": " + name);
  const std::optional<KnownFeature> known = FindFeature(config, name);
  if (!known) {
    throw BadInput(where + ": \"features\" lists \"" + name +
                   "\", which config.json does not have; correct the name, or remove it");
  }
  const std::string type = feature.Text("type");
  if (type != known->type) {
    throw feature.Bad("type", "is \"" + type + "\"; by config.json it is \"" + known->type + "\"");
  }
  const Json& shape = feature.Required("shape");
  if (shape != Json(known->shape)) {
    throw feature.Bad("shape",
                      "is " + shape.dump() + "; by config.json it is " + Json(known->shape).dump());
  }
  feature.RejectRest();
}

// The features that a step leaves out although it lists them.
std::set<std::string> LeftOut(KeyReader& keys, const Json& features) {
  constexpr char kKey[] = "normalize_observation_keys";
  std::set<std::string> rest;
  const Json* names = keys.Find(kKey);
  if (!names) return rest;
  if (!names->is_array()) throw keys.Bad(kKey, "must be an array");
  for (const auto& [name, feature] : features.items()) {
    if (name != kActionFeature) rest.insert(name);
  }
  for (const Json& name : *names) {
    const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
    if (!features.contains(text)) {
      throw keys.Bad(kKey, "lists \"" + text + "\", which is not one of the features");
    }
    rest.erase(text);
  }
  return rest;
}

// Modes by feature name from a normalising step's config.
FeatureModes ParseStepModes(KeyReader& step, const ConfigFile& config, const std::string& where) {
  KeyReader keys(step.Required("config"), where);
  if (keys.Number("eps", 0, 1, 1e-8) != 1e-8) throw keys.Bad("eps", "must be 1e-08");
  const std::map<std::string, Normalization> by_type = ParseModes(keys, "norm_map", where);
  const Json& features = keys.Required("features");
  if (!features.is_object()) throw keys.Bad("features", "must be an object");
  const std::set<std::string> left_out = LeftOut(keys, features);
  FeatureModes modes;
  for (const auto& [name, value] : features.items()) {
    CheckFeature(name, value, config.policy, where);
    const std::string type = FindFeature(config.policy, name)->type;
    const std::optional<Normalization> mode = ModeOfType(by_type, type);
    if (!mode) {
      throw keys.Bad("norm_map", "does not name " + type + ": \"" + name +
                                     "\" would pass un-normalised; add it, with IDENTITY if that "
                                     "is meant");
    }
    modes[name] = left_out.contains(name) ? Normalization::kIdentity : *mode;
    const auto configured = config.modes.find(name);
    if (modes[name] == Normalization::kIdentity && configured != config.modes.end() &&
        configured->second != Normalization::kIdentity) {
      throw BadInput(where + ": \"" + name + "\" would pass un-normalised (IDENTITY), but the " +
                     "normalization_mapping of config.json says " + ModeName(configured->second) +
                     " for " + type + "; correct the one that is wrong");
    }
  }
  keys.RejectRest();
  return modes;
}

// The tokenizer reads the text as the network here does: its padding cannot matter.
void CheckTokenizer(KeyReader& config) {
  config.Ignore({"max_length", "padding", "truncation", "tokenizer_name"});
  config.Choice<int>("task_key", {{"task", 0}}, "task");
  config.Choice<int>("padding_side", {{"right", 0}}, "right");
}

// Steps around the normalising one: they must change no value of ours.
void CheckOtherStep(const std::string& name, KeyReader& step, const ConfigFile& file,
                    const std::string& where) {
  static const Json none = Json::object();
  const Json* given = step.Find("config");
  KeyReader config(given ? *given : none, where + ": \"config\"");
  if (name == "rename_observations_processor") {
    const Json* map = config.Find("rename_map");
    if (map && (!map->is_object() || !map->empty())) {
      throw config.Bad("rename_map",
                       "is " + map->dump() +
                           ", and nothing is renamed here; leave it empty and name the cameras as "
                           "config.json does");
    }
  } else if (name == "device_processor") {
    config.Ignore({"device"});  // where LeRobot runs
    config.Choice<int>("float_dtype", {{"float32", 0}}, "float32");
  } else if (name == "tokenizer_processor" && file.network->text_tokens() > 0) {
    CheckTokenizer(config);
  } else if (name != "to_batch_processor") {
    throw Unsupported(where + ": processor step \"" + name +
                      "\" is not supported; supported are rename_observations_processor, "
                      "to_batch_processor, device_processor, normalizer_processor, "
                      "unnormalizer_processor");
  }
  config.RejectRest();
}

SafetensorsFile ReadStateFile(CheckpointFiles& files, KeyReader& step, const std::string& where) {
  if (!step.Has("state_file")) {
    throw BadInput(where +
                   ": has no \"state_file\": the policy would run un-normalised; save the "
                   "processors with the statistics of the training data");
  }
  const std::string name = step.Text("state_file");
  if (name.empty() || name.find('/') != std::string::npos || name == "..") {
    throw step.Bad("state_file", "must be the name of a file in the same folder");
  }
  return files.ReadTensors(name, kMaxStats);
}

// One normalising step of a processor file.
struct ProcessorStep {
  FeatureModes modes;  // of the features that it lists
  SafetensorsFile stats;
};

ProcessorStep ReadProcessor(CheckpointFiles& files, const ConfigFile& config,
                            const std::string& file, const std::string& registry_name) {
  const std::string path = files.PathOf(file);
  const Json json = files.ReadJson(file);
  KeyReader keys(json, path);
  keys.Ignore({"name"});
  const Json& steps = keys.Required("steps");
  if (!steps.is_array()) throw keys.Bad("steps", "must be an array");
  keys.RejectRest();
  std::optional<ProcessorStep> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    std::string where = path + ": step " + std::to_string(i);
    const std::string name = KeyReader(steps[i], where).Text("registry_name");
    where += " (" + name + ")";
    KeyReader step(steps[i], where);
    step.Ignore({"registry_name"});
    if (name == registry_name) {
      if (found) throw BadInput(where + ": a second one is not supported");
      FeatureModes modes = ParseStepModes(step, config, where);
      found = ProcessorStep{std::move(modes), ReadStateFile(files, step, where)};
    } else {
      CheckOtherStep(name, step, config, where);
    }
    step.RejectRest();
  }
  if (!found) {
    throw BadInput(path + ": has no " + registry_name +
                   ": the policy would run un-normalised; save the processors with it");
  }
  return std::move(*found);
}

StatLookup LookupIn(const SafetensorsFile& file) {
  return [&file](const std::string& feature, const std::string& stat) {
    const std::string name = feature + "." + stat;
    return file.Find(name) ? file.Floats(name).data : std::vector<float>{};
  };
}

}  // namespace

NormalizerStats ReadProcessorStats(CheckpointFiles& files, const ConfigFile& config) {
  const ProcessorStep before = ReadProcessor(files, config, kPreprocessor, "normalizer_processor");
  const ProcessorStep after =
      ReadProcessor(files, config, kPostprocessor, "unnormalizer_processor");
  PolicyConfig inputs = config.policy;
  inputs.action_dim = 0;
  NormalizerStats stats =
      CollectStats(inputs, before.modes, LookupIn(before.stats), before.stats.origin());
  PolicyConfig outputs;
  outputs.action_dim = config.policy.action_dim;
  stats.action =
      CollectStats(outputs, after.modes, LookupIn(after.stats), after.stats.origin()).action;
  return stats;
}

}  // namespace mjp
