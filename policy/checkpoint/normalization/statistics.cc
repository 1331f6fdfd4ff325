#include "policy/checkpoint/normalization/statistics.h"

#include <cmath>

#include "base/error.h"

namespace mjp {
namespace {

constexpr int kChannels = 3;

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
      throw BadInput(origin + ": nothing says how \"" + feature +
                     "\" is normalised: it would reach the network un-normalised; add it to the "
                     "features, and its type to the map of modes (IDENTITY if that is meant)");
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

NormalizerStats ReadStatsJson(CheckpointFiles& files, const ConfigFile& config) {
  const std::string path = files.PathOf(kStatsFile);
  const Json json = files.ReadJson(kStatsFile);
  if (!json.is_object()) throw BadInput(path + ": must be a JSON object");
  const auto lookup = [&](const std::string& feature, const std::string& stat) {
    std::vector<float> values;
    const auto found = json.find(feature);
    if (found != json.end() && found->contains(stat)) {
      Flatten((*found)[stat], path + ": \"" + feature + "." + stat + "\"", values);
    }
    return values;
  };
  return CollectStats(config.policy, config.modes, lookup, path);
}

}  // namespace mjp
