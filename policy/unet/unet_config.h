#ifndef POLICY_UNET_UNET_CONFIG_H_
#define POLICY_UNET_UNET_CONFIG_H_

#include <optional>
#include <string>

#include "base/json_forward.h"
#include "base/key_reader.h"
#include "policy/checkpoint/config.h"

namespace mjp {

// Parses what the config.json of a U-Net's policy has beyond its features, which are in `features`.
// Throws Error that names the key for anything missing, out of range or unsupported.
UnetPolicyConfig ParseUnetPolicy(KeyReader& keys, const std::string& origin,
                                 const PolicyConfig& features);
// And back: the members that not every policy has.
void AddUnetPolicy(const UnetPolicyConfig& config, Json& json);

// Most levels of a U-Net.
inline constexpr int kMostLevels = 8;

// What the horizon of a U-Net's policy must be a multiple of.
int HorizonMultiple(const UnetConfig& unet);

// What LeRobot's crop_ratio leaves of a side of a resized picture, in pixels.
inline int CroppedSide(int side, double ratio) { return static_cast<int>(side * ratio); }
// A crop_ratio that gives the crop of `encoder` after its resize; 1 where it has not both, or the
// crop is the whole picture. None where no ratio gives it.
std::optional<double> CropRatio(const EncoderConfig& encoder);

// The value of "compact_encoder", which is `where`, and back.
EncoderConfig ParseCompactEncoder(const Json& json, const std::string& where);
Json CompactEncoderJson(const EncoderConfig& encoder);

// The members of a config that say when it is decided anew, and back.
void ParseReplanning(KeyReader& keys, PolicyConfig& config);
void AddReplanning(const PolicyConfig& config, Json& json);

// The members of a config that describe its U-Net and its scheduler, and back.
UnetConfig ParseUnet(KeyReader& keys);
SchedulerConfig ParseScheduler(KeyReader& keys);
void AddUnet(const UnetConfig& unet, Json& json);
void AddScheduler(const SchedulerConfig& scheduler, Json& json);

}  // namespace mjp

#endif  // POLICY_UNET_UNET_CONFIG_H_
