#include "policy/checkpoint/statistics.h"

#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/key_reader.h"
#include "policy/checkpoint/safetensors.h"

namespace mjp {
namespace {

constexpr int kChannels = 3;

// One normalising step of a processor file.
struct ProcessorStep {
  std::string origin;
  FeatureModes modes;  // of the features it applies to
  SafetensorsFile stats;
};

// Modes by feature name from a step's config. A feature that the step does not list would reach
// the network as it is.
FeatureModes ParseStepModes(KeyReader& step, const std::string& where) {
  KeyReader keys(step.Required("config"), where);
  if (keys.Number("eps", 0, 1, 1e-8) != 1e-8) throw keys.Bad("eps", "must be 1e-08");
  std::map<std::string, Normalization> by_type;
  const Json& norm_map = keys.Required("norm_map");
  if (!norm_map.is_object()) throw keys.Bad("norm_map", "must be an object");
  for (const auto& [type, mode] : norm_map.items()) {
    by_type[type] = ParseNormalization(mode, where + ": \"norm_map\": " + type);
  }
  std::optional<std::set<std::string>> chosen;
  if (const Json* names = keys.Find("normalize_observation_keys")) {
    if (!names->is_array()) throw keys.Bad("normalize_observation_keys", "must be an array");
    chosen.emplace();
    for (const Json& name : *names) chosen->insert(name.is_string() ? name.get<std::string>() : "");
  }
  FeatureModes modes;
  const Json& features = keys.Required("features");
  if (!features.is_object()) throw keys.Bad("features", "must be an object");
  for (const auto& [name, value] : features.items()) {
    KeyReader feature(value, where + ": \"features\": " + name);
    const auto mode = by_type.find(feature.Text("type"));
    const bool applies = mode != by_type.end() && (!chosen || chosen->contains(name));
    modes[name] = applies ? mode->second : Normalization::kIdentity;
  }
  keys.RejectRest();
  return modes;
}

// Steps around the normalising one that change no value of ours.
void CheckOtherStep(const std::string& name, KeyReader& step, const std::string& where) {
  if (name == "rename_observations_processor" || name == "to_batch_processor") return;
  if (name != "device_processor") {
    throw Unsupported(where + ": processor step \"" + name +
                      "\" is not supported; supported are rename_observations_processor, "
                      "to_batch_processor, device_processor, normalizer_processor, "
                      "unnormalizer_processor");
  }
  KeyReader config(step.Required("config"), where);
  config.Choice<int>("float_dtype", {{"float32", 0}}, "float32");
}

SafetensorsFile ReadStateFile(const std::string& directory, KeyReader& step,
                              const std::string& where) {
  if (!step.Has("state_file")) {
    throw BadInput(where +
                   ": has no \"state_file\": the policy would run un-normalised; save the "
                   "processors with the statistics of the training data");
  }
  const std::string name = step.Text("state_file");
  if (name.empty() || name.find('/') != std::string::npos || name == "..") {
    throw step.Bad("state_file", "must be the name of a file in the same folder");
  }
  return SafetensorsFile::Read(directory + "/" + name);
}

ProcessorStep ReadProcessor(const std::string& directory, const std::string& file,
                            const std::string& registry_name) {
  const std::string path = directory + "/" + file;
  const Json json = ReadJson(path);
  KeyReader keys(json, path);
  const Json& steps = keys.Required("steps");
  if (!steps.is_array()) throw keys.Bad("steps", "must be an array");
  std::optional<ProcessorStep> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string where = path + ": step " + std::to_string(i);
    KeyReader step(steps[i], where);
    const std::string name = step.Text("registry_name");
    if (name != registry_name) {
      CheckOtherStep(name, step, where);
      continue;
    }
    if (found) throw BadInput(where + ": a second " + registry_name + " is not supported");
    FeatureModes modes = ParseStepModes(step, where);
    found = ProcessorStep{path, std::move(modes), ReadStateFile(directory, step, where)};
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

// The numbers of nested arrays, in order.
void Flatten(const Json& value, const std::string& where, std::vector<float>& out) {
  if (value.is_number()) {
    out.push_back(value.get<float>());
  } else if (value.is_array()) {
    for (const Json& element : value) Flatten(element, where, out);
  } else {
    throw BadInput(where + " holds something other than numbers");
  }
}

}  // namespace

std::string ModeName(Normalization mode) {
  switch (mode) {
    case Normalization::kIdentity:
      return "IDENTITY";
    case Normalization::kMeanStd:
      return "MEAN_STD";
    case Normalization::kMinMax:
      return "MIN_MAX";
    case Normalization::kQuantiles:
      return "QUANTILES";
    case Normalization::kQuantile10:
      return "QUANTILE10";
  }
  return "";
}

std::pair<std::string, std::string> StatNames(Normalization mode) {
  switch (mode) {
    case Normalization::kIdentity:
      return {};
    case Normalization::kMeanStd:
      return {"mean", "std"};
    case Normalization::kMinMax:
      return {"min", "max"};
    case Normalization::kQuantiles:
      return {"q01", "q99"};
    case Normalization::kQuantile10:
      return {"q10", "q90"};
  }
  return {};
}

FeatureStats MakeStats(const std::string& feature, Normalization mode, int dim,
                       const StatLookup& lookup, const std::string& origin) {
  FeatureStats stats{mode, {}, {}};
  if (mode == Normalization::kIdentity) return stats;
  const auto names = StatNames(mode);
  const auto take = [&](const std::string& stat) {
    std::vector<float> values = lookup(feature, stat);
    const std::string what = origin + ": \"" + feature + "." + stat + "\"";
    if (values.empty()) {
      throw BadInput(what + " is missing, which " + ModeName(mode) +
                     " needs: the policy would run un-normalised; add the statistics of the "
                     "training data");
    }
    if (values.size() != static_cast<size_t>(dim)) {
      throw BadInput(what + " has " + std::to_string(values.size()) + " values, expected " +
                     std::to_string(dim));
    }
    for (const float value : values) {
      if (!std::isfinite(value)) {
        throw BadInput(what +
                       " is not finite: the policy was saved without the statistics of its "
                       "training data; save it again with them");
      }
    }
    return values;
  };
  stats.first = take(names.first);
  stats.second = take(names.second);
  for (size_t i = 0; i < stats.first.size(); ++i) {
    const float range =
        mode == Normalization::kMeanStd ? stats.second[i] : stats.second[i] - stats.first[i];
    if (!(range > 0) || !std::isfinite(range)) {
      throw BadInput(origin + ": \"" + feature + "\": " + names.second +
                     (mode == Normalization::kMeanStd ? "" : " - " + names.first) + " of element " +
                     std::to_string(i) + " is " + std::to_string(range) +
                     ", it must be positive; compute the statistics on data where it varies");
    }
  }
  return stats;
}

NormalizerStats CollectStats(const PolicyConfig& config, const FeatureModes& modes,
                             const StatLookup& lookup, const std::string& origin) {
  const auto make = [&](const std::string& feature, int dim) {
    if (dim == 0) return FeatureStats{};
    const auto mode = modes.find(feature);
    if (mode == modes.end()) {
      throw BadInput(origin + ": says nothing about \"" + feature +
                     "\": it would reach the network un-normalised; add it to the features");
    }
    return MakeStats(feature, mode->second, dim, lookup, origin);
  };
  NormalizerStats stats;
  for (const CameraFeature& camera : config.cameras) {
    stats.cameras.push_back(make(camera.name, kChannels));
  }
  stats.state = make(kStateFeature, config.state_dim);
  stats.environment = make(kEnvironmentFeature, config.environment_dim);
  stats.action = make(kActionFeature, config.action_dim);
  return stats;
}

NormalizerStats ReadProcessorStats(const std::string& directory, const PolicyConfig& config) {
  const ProcessorStep before =
      ReadProcessor(directory, "policy_preprocessor.json", "normalizer_processor");
  const ProcessorStep after =
      ReadProcessor(directory, "policy_postprocessor.json", "unnormalizer_processor");
  PolicyConfig inputs = config;
  inputs.action_dim = 0;
  NormalizerStats stats =
      CollectStats(inputs, before.modes, LookupIn(before.stats), before.stats.origin());
  PolicyConfig outputs;
  outputs.action_dim = config.action_dim;
  stats.action =
      CollectStats(outputs, after.modes, LookupIn(after.stats), after.stats.origin()).action;
  return stats;
}

NormalizerStats ReadStatsJson(const std::string& path, const PolicyConfig& config,
                              const FeatureModes& modes) {
  const Json json = ReadJson(path);
  const auto lookup = [&](const std::string& feature, const std::string& stat) {
    std::vector<float> values;
    const auto found = json.find(feature);
    if (found != json.end() && found->contains(stat)) {
      Flatten((*found)[stat], path + ": \"" + feature + "." + stat + "\"", values);
    }
    return values;
  };
  return CollectStats(config, modes, lookup, path);
}

}  // namespace mjp
