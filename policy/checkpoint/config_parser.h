#ifndef POLICY_CHECKPOINT_CONFIG_PARSER_H_
#define POLICY_CHECKPOINT_CONFIG_PARSER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/json_forward.h"
#include "base/key_reader.h"
#include "policy/checkpoint/config.h"
#include "policy/checkpoint/network_model.h"

namespace mjp {

// How each feature is normalised, by feature name: cameras', kStateFeature, ... One for which
// nothing is said is not in it.
using FeatureModes = std::map<std::string, Normalization>;

inline constexpr char kStateFeature[] = "observation.state";
inline constexpr char kEnvironmentFeature[] = "observation.environment_state";
inline constexpr char kActionFeature[] = "action";

// What config.json holds. The processor files of the newer layout may have other modes.
struct ConfigFile {
  PolicyConfig policy;
  FeatureModes modes;
  std::shared_ptr<NetworkModel> network;  // without its weights
};

// Parses config.json: LeRobot's of any year (the oldest have no type) and this project's own, of
// each type in policy/network_types.h (docs/CHECKPOINTS.md). Throws Error that names the key for
// anything missing, out of range or unsupported.
ConfigFile ParseConfig(const Json& json, const std::string& origin);

// A map of modes by type of feature ("STATE": "MIN_MAX", ...), from member `key`; `where` is the
// object's place in errors. Throws Error for a type or mode that there is not.
std::map<std::string, Normalization> ParseModes(KeyReader& keys, const std::string& key,
                                                const std::string& where);

// The mode of a type of feature. One that the map does not name is not normalised, as in LeRobot,
// but of STATE and ACTION that must be said: nothing then.
std::optional<Normalization> ModeOfType(const std::map<std::string, Normalization>& modes,
                                        const std::string& type);

// "MIN_MAX" or "min_max" and so on. Throws Error that starts with `where`.
Normalization ParseNormalization(const Json& value, const std::string& where);

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_CONFIG_PARSER_H_
