#ifndef POLICY_CHECKPOINT_NORMALIZATION_STATISTICS_H_
#define POLICY_CHECKPOINT_NORMALIZATION_STATISTICS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "policy/checkpoint/checkpoint_files.h"
#include "policy/checkpoint/config.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/network.h"

// Where a checkpoint keeps the statistics of its normalisation, and how they are checked.

namespace mjp {

// The values of statistic `stat` ("mean", "q01", ...) of `feature`, or none if there is no such.
using StatLookup =
    std::function<std::vector<float>(const std::string& feature, const std::string& stat)>;

// "MIN_MAX" and so on, as in config.json.
std::string ModeName(Normalization mode);

// The two statistics that a mode needs: mean and std, min and max, ... ; empty for kIdentity.
std::pair<std::string, std::string> StatNames(Normalization mode);

// The statistics of one feature of `dim` values (channels of a picture). Throws Error if they are
// missing, of another size, not finite, or span no range.
FeatureStats MakeStats(const std::string& feature, Normalization mode, int dim,
                       const StatLookup& lookup, const std::string& origin);

// All features of `config`. Throws Error for one that has no mode, and as MakeStats does.
NormalizerStats CollectStats(const PolicyConfig& config, const FeatureModes& modes,
                             const StatLookup& lookup, const std::string& origin);

inline constexpr char kStatsFile[] = "stats.json";

// From stats.json: {"observation.state": {"min": [...], "max": [...]}, ...}, as in LeRobot's data
// sets, with the modes of config.json.
NormalizerStats ReadStatsJson(CheckpointFiles& files, const ConfigFile& config);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_NORMALIZATION_STATISTICS_H_
