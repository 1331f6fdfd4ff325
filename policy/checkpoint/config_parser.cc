#include "policy/checkpoint/config_parser.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "policy/network_types.h"
#include "policy/ranges/config_ranges.h"

namespace mjp {
namespace {

constexpr int kMaxCameras = 16;

enum class FeatureType { kVisual, kState, kEnvironment, kAction };

// LeRobot's types of features, those without an input here included.
constexpr const char* kFeatureTypes[] = {"VISUAL", "STATE", "ENV", "ACTION", "REWARD", "LANGUAGE"};

void SetMode(const std::map<std::string, Normalization>& mapping, const std::string& name,
             const char* type, FeatureModes& modes) {
  if (const std::optional<Normalization> mode = ModeOfType(mapping, type)) modes[name] = *mode;
}

int VectorSize(KeyReader& feature) {
  return RangedKeys(feature, kFeatureRanges).Ints("shape", 1, 1)[0];
}

void AddCamera(PolicyConfig& config, const std::string& name, KeyReader& feature) {
  const std::vector<int> shape = RangedKeys(feature, kFeatureRanges).Ints("shape", 3, 3);
  if (shape[0] != 3) throw feature.Bad("shape", "must be [3, height, width]: RGB, channels first");
  if (config.cameras.size() == kMaxCameras) throw feature.Bad("shape", "is that of a 17th camera");
  const CameraFeature camera{name, shape[0], shape[1], shape[2]};
  if (!config.cameras.empty() &&
      (camera.height != config.cameras[0].height || camera.width != config.cameras[0].width)) {
    throw feature.Bad("shape", "differs from the first camera's; all pictures must have one size");
  }
  config.cameras.push_back(camera);
}

// One input feature; `type` is what the file or, in the oldest layout, the name says it is.
void AddInput(PolicyConfig& config, const std::string& name, FeatureType type, KeyReader& feature) {
  if (type == FeatureType::kVisual) {
    AddCamera(config, name, feature);
  } else if (type == FeatureType::kState && name == kStateFeature) {
    config.state_dim = VectorSize(feature);
  } else if (type == FeatureType::kEnvironment && name == kEnvironmentFeature) {
    config.environment_dim = VectorSize(feature);
  } else {
    throw feature.Bad("type", std::string("does not fit the name; supported inputs are cameras, ") +
                                  kStateFeature + " (STATE) and " + kEnvironmentFeature + " (ENV)");
  }
}

void ParseFeatures(KeyReader& keys, const std::string& origin, ConfigFile& out) {
  const std::map<std::string, Normalization> mapping =
      ParseModes(keys, "normalization_mapping", origin);
  const Json& inputs = keys.Required("input_features");
  if (!inputs.is_object()) throw keys.Bad("input_features", "must be an object");
  for (const auto& [name, value] : inputs.items()) {
    KeyReader feature(value, origin + ": \"input_features\": " + name);
    const auto type = feature.Choice<FeatureType>("type", {{"VISUAL", FeatureType::kVisual},
                                                           {"STATE", FeatureType::kState},
                                                           {"ENV", FeatureType::kEnvironment}});
    AddInput(out.policy, name, type, feature);
    feature.RejectRest();
    const char* text = type == FeatureType::kVisual  ? "VISUAL"
                       : type == FeatureType::kState ? "STATE"
                                                     : "ENV";
    SetMode(mapping, name, text, out.modes);
  }
  const Json& outputs = keys.Required("output_features");
  KeyReader output_keys(outputs, origin + ": \"output_features\"");
  KeyReader action(output_keys.Required(kActionFeature), origin + ": \"output_features\": action");
  action.Choice<FeatureType>("type", {{"ACTION", FeatureType::kAction}});
  out.policy.action_dim = VectorSize(action);
  action.RejectRest();
  output_keys.RejectRest();
  SetMode(mapping, kActionFeature, "ACTION", out.modes);
}

// LeRobot in 2024: shapes and modes by feature name, no types.
void ParseOldestFeatures(KeyReader& keys, const std::string& origin, ConfigFile& out) {
  const auto read = [&](const char* shapes, const char* modes, auto&& add) {
    const Json& shape_of = keys.Required(shapes);
    const Json& mode_of = keys.Required(modes);
    if (!shape_of.is_object()) throw keys.Bad(shapes, "must be an object");
    KeyReader mode_keys(mode_of, origin + ": \"" + modes + "\"");
    for (const auto& [name, shape] : shape_of.items()) {
      const Json wrapped = {{"shape", shape}};
      KeyReader feature(wrapped, origin + ": \"" + shapes + "\": " + name);
      add(name, feature);
      out.modes[name] =
          ParseNormalization(mode_keys.Required(name), origin + ": \"" + modes + "\": " + name);
    }
    mode_keys.RejectRest();
  };
  read("input_shapes", "input_normalization_modes", [&](const std::string& name, KeyReader& f) {
    const FeatureType type = name == kStateFeature         ? FeatureType::kState
                             : name == kEnvironmentFeature ? FeatureType::kEnvironment
                                                           : FeatureType::kVisual;
    AddInput(out.policy, name, type, f);
  });
  read("output_shapes", "output_normalization_modes", [&](const std::string& name, KeyReader& f) {
    if (name != kActionFeature) throw f.Bad("shape", "is of an output other than \"action\"");
    out.policy.action_dim = VectorSize(f);
  });
}

}  // namespace

Normalization ParseNormalization(const Json& value, const std::string& where) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  if (text == "IDENTITY") return Normalization::kIdentity;
  if (text == "MEAN_STD") return Normalization::kMeanStd;
  if (text == "MIN_MAX") return Normalization::kMinMax;
  if (text == "QUANTILES") return Normalization::kQuantiles;
  if (text == "QUANTILE10") return Normalization::kQuantile10;
  throw Unsupported(where + " is " + value.dump() +
                    "; supported are: IDENTITY, MEAN_STD, MIN_MAX, QUANTILES, QUANTILE10");
}

std::map<std::string, Normalization> ParseModes(KeyReader& keys, const std::string& key,
                                                const std::string& where) {
  const Json& object = keys.Required(key);
  if (!object.is_object()) throw keys.Bad(key, "must be an object");
  std::map<std::string, Normalization> modes;
  for (const auto& [type, mode] : object.items()) {
    std::string known;
    for (const char* each : kFeatureTypes) known += std::string(known.empty() ? "" : ", ") + each;
    if (std::ranges::find(kFeatureTypes, type) == std::end(kFeatureTypes)) {
      throw keys.Bad(key,
                     "names \"" + type + "\", which is no type of feature; there are " + known);
    }
    modes[type] = ParseNormalization(mode, where + ": \"" + key + "\": " + type);
  }
  return modes;
}

std::optional<Normalization> ModeOfType(const std::map<std::string, Normalization>& modes,
                                        const std::string& type) {
  const auto found = modes.find(type);
  if (found != modes.end()) return found->second;
  if (type == "STATE" || type == "ACTION") return std::nullopt;
  return Normalization::kIdentity;
}

ConfigFile ParseConfig(const Json& json, const std::string& origin) {
  KeyReader keys(json, origin);
  ConfigFile file;
  const NetworkType& type = NetworkTypeIn(keys);
  file.policy.type = type.name;
  if (keys.Has("type")) {
    ParseFeatures(keys, origin, file);
  } else {
    ParseOldestFeatures(keys, origin, file);
  }
  if (file.policy.state_dim == 0) {
    throw keys.Bad("input_features", std::string("lack ") + kStateFeature);
  }
  file.network = type.parse(keys, origin, file.policy);
  keys.RejectRest();
  return file;
}

}  // namespace mjp
