#ifndef APPS_TRAIN_NETWORK_ARCHITECTURES_H_
#define APPS_TRAIN_NETWORK_ARCHITECTURES_H_

#include <string>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/pictures/picture_look.h"

// The networks that mjpolicy-train can train, by name.

namespace mjp::app {

// What the command line may change about an architecture; an empty list keeps its own.
struct ArchitectureOptions {
  std::string name = "compact";        // "compact" (this project's) or "lerobot" (ResNet-18)
  std::vector<int> unet_channels;      // per level
  std::vector<int> stage_channels;     // of the encoder, per stage
  int stem_channels = 0;               // 0: the architecture's own
  int action_steps = 0;                // executed per decision; 0: the architecture's own
  std::string prediction = "epsilon";  // what the U-Net tells: "epsilon", "sample" or "v"
};

// A policy without weights.
struct Architecture {
  mjp::UnetPolicyConfig config;
  mjp::NormalizerStats stats;
  mjp::PictureLooks looks;  // of the pictures that it is trained on
};

// That for the 96x96 picture of Push-T's rasteriser and the agent's position in pixels, with its
// normalisation (256 +- 256 pixels onto +-1, picture levels onto +-1). Throws Error for a name or
// prediction that is not known or channels that no norm can group.
Architecture MakeArchitecture(const ArchitectureOptions& options);

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_ARCHITECTURES_H_
