#ifndef PLUGIN_MODEL_CONFIG_H_
#define PLUGIN_MODEL_CONFIG_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace mjp {

// The attributes of one plugin instance, parsed once. plugin/README.md has them as a table.
struct Config {
  std::string checkpoint;                // directory
  std::vector<std::string> cameras;      // names, in the checkpoint's order
  std::vector<std::string> state;        // what "observation.state" is made of
  std::vector<std::string> environment;  // what "observation.environment_state" is made of
  std::vector<std::string> actuators;    // names, in the order of the action
  std::vector<double> state_scale{1};    // policy's units per unit of the model: 1 or one each
  std::vector<double> environment_scale{1};
  std::vector<double> action_scale{1};
  double period = 0.1;   // seconds of a control step
  double latency = 0;    // seconds of simulation from an observation to the first action from it
  int action_steps = 0;  // actions executed per decision; 0: as the checkpoint says
  bool async = false;    // decide on a thread of its own while the simulation goes on
  uint64_t seed = 0;     // of the noise; a host may give each episode its own (plugin/state.h)
  std::string renderer = "auto";
  std::string trail;  // site or body whose predicted way is drawn; empty: that of the last joint
  std::string label;  // site where the label stands; empty: no label
  std::string prefix,
      suffix;  // of all its names, where the model was attached (plugin/model/scope.h)
  PolicyOptions policy;

  // Reads and checks the attributes of `instance`. Throws Error naming the attribute, what it is
  // and what it should be. The model's names are not looked up.
  static Config FromModel(const mjModel* model, int instance);
};

// The attributes' names. A constant expression: the library registers the plugin before anything
// that needs a constructor is sure to exist.
inline constexpr const char* kConfigAttributes[] = {
    "checkpoint",        "camera",       "state",    "environment", "actuators", "state_scale",
    "environment_scale", "action_scale", "period",   "latency",     "async",     "action_steps",
    "sampler",           "steps",        "parallel", "hold_noise",  "seed",      "backend",
    "precision",         "threads",      "renderer", "trail",       "label",     "self_check",
    "instruction"};

}  // namespace mjp

#endif  // PLUGIN_MODEL_CONFIG_H_
