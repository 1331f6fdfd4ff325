#ifndef PLUGIN_MODEL_CONFIG_H_
#define PLUGIN_MODEL_CONFIG_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace mjp {

// How numbers of the model and of the policy belong together: value x gain + offset, each one for
// all numbers, or one each. Of observations the value is the model's, of actions the policy's.
struct LinearMap {
  std::vector<double> gain{1}, offset{0};
  std::string attribute;  // "state_scale" or "state_gain": what the model has
};

// The attributes of one plugin instance, parsed once. plugin/README.md has them as a table.
struct Config {
  std::string checkpoint;                // directory
  std::vector<std::string> cameras;      // names, in the checkpoint's order
  std::vector<std::string> state;        // what "observation.state" is made of
  std::vector<std::string> environment;  // what "observation.environment_state" is made of
  std::vector<std::string> actuators;    // names, in the order of the action
  LinearMap state_map{.attribute = "state_scale"};
  LinearMap environment_map{.attribute = "environment_scale"};
  LinearMap action_map{.attribute = "action_gain"};
  std::vector<double> action_scale{1};  // before its map an action is divided by this
  std::vector<double> action_clip;      // lowest, highest, for all or for each; empty: none
  std::vector<int> action_index;  // the number of the action for each control; empty: in order
  double period = 0.1;            // seconds of a control step
  double latency = 0;    // seconds of simulation from an observation to the first action from it
  int action_steps = 0;  // actions executed per decision; 0: as the checkpoint says
  // policy/prefix/event_replanning.h; 0: every new chunk is taken; none: as ResolveRule says
  std::optional<double> replan_beyond;
  int replan_after = 0;  // control steps; 0: as many as the checkpoint executes
  bool async = false;    // decide on a thread of its own while the simulation goes on
  uint64_t seed = 0;     // of the noise; a host may give each episode its own (plugin/state.h)
  std::string renderer = "auto";
  std::string trail;   // site or body whose predicted way is drawn; empty: that of the last joint
  std::string label;   // site where the label stands; empty: no label
  std::string record;  // folder of a data set; empty: nothing is recorded
  std::string prefix,
      suffix;  // of all its names, where the model was attached (plugin/model/scope.h)
  PolicyOptions policy;

  // Reads and checks the attributes of `instance`. Throws Error naming the attribute, what it is
  // and what it should be. The model's names are not looked up.
  static Config FromModel(const mjModel* model, int instance);
  // Throws Error where a step of the engine is longer than a control step.
  void CheckTimestep(const mjModel* model) const;
};

// The attributes' names. A constant expression: the library registers the plugin before anything
// that needs a constructor is sure to exist.
inline constexpr const char* kConfigAttributes[] = {"checkpoint",
                                                    "camera",
                                                    "state",
                                                    "environment",
                                                    "actuators",
                                                    "state_scale",
                                                    "environment_scale",
                                                    "action_scale",
                                                    "period",
                                                    "latency",
                                                    "async",
                                                    "action_steps",
                                                    "replan_beyond",
                                                    "sampler",
                                                    "steps",
                                                    "parallel",
                                                    "temperature",
                                                    "hold_noise",
                                                    "prefix",
                                                    "seed",
                                                    "backend",
                                                    "precision",
                                                    "threads",
                                                    "renderer",
                                                    "trail",
                                                    "label",
                                                    "self_check",
                                                    "instruction",
                                                    "state_gain",
                                                    "state_offset",
                                                    "environment_gain",
                                                    "environment_offset",
                                                    "action_gain",
                                                    "action_offset",
                                                    "action_clip",
                                                    "action_index",
                                                    "record",
                                                    "warm_start",
                                                    "replan_after"};

// From now on the value of an attribute in every model of this process, in place of what the model
// has: options of a command. To be called while no model is compiled.
void SetAttributesInstead(std::map<std::string, std::string> values);

}  // namespace mjp

#endif  // PLUGIN_MODEL_CONFIG_H_
