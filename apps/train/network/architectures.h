#ifndef APPS_TRAIN_NETWORK_ARCHITECTURES_H_
#define APPS_TRAIN_NETWORK_ARCHITECTURES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/checkpoint/network.h"
#include "policy/checkpoint/network_model.h"
#include "policy/dit/dit_config.h"
#include "policy/pictures/picture_look.h"

// The networks that mjpolicy-train can train, by name.

namespace mjp::app {

// How a policy is to be executed, as config.json says it; what is not given stays as it is.
struct Execution {
  std::optional<double> temperature;  // deviation of a chain's noise
  int replan_every = 0;               // control steps from decision to decision; 0: not given
  std::optional<double> replan_beyond;
};
// Throws Error where no chunk could be followed.
void Apply(const Execution& execution, mjp::PolicyConfig& config, mjp::SchedulerConfig& scheduler);

// What the command line may change about an architecture; an empty list keeps its own.
struct ArchitectureOptions {
  // "compact" (this project's), "lerobot" (ResNet-18), or "dit" (a transformer)
  std::string name = "compact";
  std::vector<int> unet_channels;   // per level
  std::vector<int> stage_channels;  // of the encoder, per stage
  int stem_channels = 0;            // 0: the architecture's own
  int action_steps = 0;             // executed per decision; 0: the architecture's own
  Execution execution;
  std::string prediction = "epsilon";       // what the network tells: "epsilon", "sample" or "v"
  std::string objective = "diffusion";      // of the transformer: "diffusion" or "flow"
  int hidden = 256, layers = 4, heads = 4;  // of the transformer

  bool IsDit() const { return name == "dit"; }
  bool IsFlow() const { return objective == "flow"; }
  // What the network tells, as a run keeps it; of a transformer also what no shape of its
  // parameters says.
  std::string Told() const {
    if (!IsDit()) return prediction;
    return (IsFlow() ? objective : prediction) + ", " + std::to_string(heads) + " heads";
  }
};

// A policy without weights.
struct Architecture {
  // The U-Net's; of a transformer all but the network: features, times, encoder, noise schedule.
  mjp::UnetPolicyConfig config;
  mjp::NormalizerStats stats;
  mjp::PictureLooks looks;            // of the pictures that it is trained on
  std::optional<mjp::DitConfig> dit;  // the transformer in the U-Net's place

  const mjp::DitConfig* transformer() const { return dit ? &*dit : nullptr; }
  const mjp::PolicyConfig& policy() const {
    return dit ? static_cast<const mjp::PolicyConfig&>(*dit) : config;
  }
  // Its network without weights.
  std::shared_ptr<mjp::NetworkModel> NewModel() const;
};

// That for the 96x96 picture of Push-T's rasteriser and the agent's position in pixels, with its
// normalisation (256 +- 256 pixels onto +-1, picture levels onto +-1). Throws Error for a name or
// prediction that is not known, channels that no norm can group, options of another network, times
// that do not fit the network, and as CheckLoads does.
Architecture MakeArchitecture(const ArchitectureOptions& options);
// The same before its times and execution are known: those of `options` are not looked at.
Architecture MakeNetwork(const ArchitectureOptions& options);

// Throws Error where a checkpoint of `policy` could not be loaded as the same policy.
void CheckLoads(const Architecture& policy);

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_ARCHITECTURES_H_
