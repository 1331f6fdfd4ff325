#ifndef PLUGIN_POLICY_INSTANCE_H_
#define PLUGIN_POLICY_INSTANCE_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plugin/host_sensors.h"
#include "plugin/model/binding.h"
#include "plugin/model/config.h"
#include "plugin/model/units.h"
#include "plugin/pictures/picture_history.h"
#include "plugin/policies/cache.h"
#include "plugin/recording.h"
#include "plugin/score.h"
#include "plugin/state.h"
#include "plugin/trail.h"
#include "policy/act/temporal_ensemble.h"
#include "policy/prefix/event_replanning.h"

namespace mjp {

// One instance of the plugin in one mjData: observes at control ticks, decides when the executed
// part of a chunk is used up, and writes the controls at every call. Everything its next control
// depends on is in plugin_state (plugin/state.h); this object holds what can be made again.
class PolicyInstance {
 public:
  // Size of the instance's plugin_state. Throws Error for attributes or a checkpoint that cannot
  // be used.
  static int StateSize(const mjModel* model, int instance);

  // Makes an instance. Throws Error for anything in attributes, checkpoint or model that does not
  // fit. Within the compiler (plugin/guard.h) nothing is decided: it is a trial.
  PolicyInstance(const mjModel* model, int instance);

  // Starts an episode in `state`, with the seed of the attributes.
  void Reset(mjtNum* state);
  // Observes and decides if d->time has come to a new control tick, then writes the controls.
  void Compute(const mjModel* model, mjData* data);
  // The engine took a step with them.
  void Stepped(const mjModel* model, mjData* data);
  // Adds to a scene for people what the policy is about to do, and a label with its figures.
  void Visualize(const mjModel* model, mjData* data, mjvScene* scene);

  // For a viewer of this process, which may look further than sensors can.
  // What the policy is asked for the observations of now: directly after a decision, what it was
  // asked then, with pictures that can be looked at. Valid until the next call of any member.
  PolicyInput Question(const mjModel* model, mjData* data);
  // Figures and chunk of the last decision; valid until the next step.
  HostReport Report(const mjModel* model, mjData* data) {
    return Report(model, StateOf(model, data));
  }
  // True while the newest decision is under way: its chunk is not there yet.
  bool Pending(const mjModel* model, mjData* data) const { return StateOf(model, data).pending(); }
  const Config& config() const { return config_; }
  const SharedPolicy& policy() const { return *policy_; }
  const ControlBinding& controls() const { return control_binding_; }
  // Whether the range or action_clip cut control `i` at the last call of Compute.
  bool Cut(int i) const { return units_.Cut(i); }
  // Made by the compiler to see whether it can be.
  bool trial() const { return trial_; }
  int action_steps() const { return action_steps_; }  // control steps from decision to decision

 private:
  InstanceState StateOf(const mjModel* model, mjData* data) const;
  void CheckActuatorsAreFree(const mjModel* model) const;
  int64_t Tick(const mjModel* model, double time) const;
  void Advance(const mjModel* model, mjData* data, int64_t tick, InstanceState& state);
  void Observe(const mjModel* model, mjData* data, InstanceState& state);
  void BeginDecision(const mjModel* model, int64_t tick, InstanceState& state);
  void FinishDecision(const mjModel* model, InstanceState& state);
  PolicyInput MakeInput(const mjModel* model, const InstanceState& state);
  std::vector<std::span<const mjtNum>> Poses(const InstanceState& state) const;
  void AddPrefix(int latency, const InstanceState& state, PolicyInput& input);  // known_actions.cc
  bool TookEffect(const mjModel* model, const mjData* data, const InstanceState& state,
                  int ago = 0) const;
  std::span<const mjtNum> Ahead(const mjModel* model, const mjData* data,
                                const InstanceState& state) const;
  void Apply(const mjModel* model, mjData* data, const InstanceState& state) const;
  HostReport Report(const mjModel* model, const InstanceState& state);
  std::string LabelText(const mjModel* model, const mjData* data, const InstanceState& state) const;

  int instance_;
  bool trial_;
  Config config_;
  std::shared_ptr<SharedPolicy> policy_;
  StateShape shape_;
  ObservationBinding state_binding_, environment_binding_;
  ControlBinding control_binding_;
  UnitCheck units_;
  HostSensors sensors_;
  Trail trail_;
  int label_;                                          // a site; negative: none
  std::vector<std::pair<std::string, Score>> scores_;  // for the label
  std::unique_ptr<PictureHistory> pictures_;           // null: the policy has no camera
  int action_steps_;                                   // ticks from one decision to the next
  std::vector<mjtNum> observation_, pose_;             // the newest
  std::optional<TemporalEnsemble> ensemble_;           // of a policy that decides at each tick
  std::optional<EventReplanning> replanning_;
  std::vector<float> state_input_, environment_input_;
  std::vector<float> prefix_, start_;  // of the newest input, as PolicyInput has them
  int prefix_steps_ = 0;
  NoiseKey key_;
  PolicyOutput output_;
  StageTimes::Span render_, apply_;       // of the newest observation, of the last decision
  std::unique_ptr<Recording> recording_;  // null: nothing is recorded
  std::vector<mjtNum> begun_;             // the state without its tick as under_way_ was begun
  UnderWay under_way_;                    // its thread ends before this object
};

}  // namespace mjp

#endif  // PLUGIN_POLICY_INSTANCE_H_
