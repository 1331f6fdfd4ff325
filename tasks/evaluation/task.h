#ifndef TASKS_EVALUATION_TASK_H_
#define TASKS_EVALUATION_TASK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "policy/pictures/picture_look.h"
#include "policy/policy.h"
#include "tasks/evaluation/options.h"
#include "tasks/results/episode.h"

// What an evaluation asks of a task. Whoever implements these classes has shards, resumed results,
// videos, comparisons and disturbances for it.

namespace mjp::app {

// What a task says of the control step that has just ended.
struct StepOutcome {
  std::string failure;           // why the simulation is not to be trusted any more, or ""
  double reward = 0;             // in [0, 1]
  std::vector<double> measures;  // in [0, 1], one for each of Task::measures
  bool success = false;
  bool enough = true;  // an episode that has succeeded, now or before, ends here
  bool lost = false;   // the episode ends here without success
};

// The video of one episode.
class EpisodeVideo {
 public:
  virtual ~EpisodeVideo() = default;

  // Appends what the simulation shows now. Throws Error if it cannot be written.
  virtual void Add(const EpisodeResult& episode) = 0;
  // Completes the video and returns its file.
  virtual std::string Close() = 0;
};

// Simulations of a task beside each other, as results see them.
class Simulations {
 public:
  virtual ~Simulations() = default;

  // Starts simulation i as `seed` says, by nothing else; forgets its failure.
  virtual void Start(int i, uint32_t seed) = 0;
  // All that tells one control step of simulation i from another; always as many numbers. Valid
  // until the next step of that simulation.
  virtual std::span<const double> State(int i) const = 0;
  // Judges where simulation i is after a control step.
  virtual void Judge(int i, StepOutcome& outcome) const = 0;
  // Begins <folder>/eval_episode_<index>.mp4 (or .avi) of simulation i. Throws Error if it cannot
  // be created.
  virtual std::unique_ptr<EpisodeVideo> MakeVideo(int i, const std::string& folder,
                                                  const EpisodeResult& episode) = 0;
};

// Those with the policy beside them, which is asked for many at once.
class BatchSimulations : public Simulations {
 public:
  // The action (action_dim) that leaves simulation i as it starts.
  virtual std::vector<double> HeldAction(int i) const = 0;
  // The task's own disturbance of simulation i before control step `tick`.
  virtual void Disturb(int i, uint32_t seed, int tick) = 0;
  // Advances the simulations `ids` (distinct) by one control step with actions (ids.size(),
  // action_dim) in the policy's units, and observes them.
  virtual void Step(std::span<const int> ids, std::span<const double> actions) = 0;
  // The state, as State has it, one control step before; at the start the same.
  virtual std::span<const double> PreviousState(int i) const = 0;

  // The policy will be asked for simulations `ids` next: what it looks at may be drawn already.
  virtual void Observe(std::span<const int> /*ids*/) {}

  // Starts an input of no simulations.
  virtual void ClearInput() = 0;
  // Appends the last observations of simulation i, whose episode has `seed`, at control step
  // `tick`.
  virtual void AddInput(int i, uint32_t seed, int tick, uint32_t decision) = 0;
  // The input of all simulations added since ClearInput; valid until the next ClearInput.
  virtual mjp::PolicyInput Input() = 0;

  // What they have taken so far, wall time in seconds; zeros where that is not measured.
  struct Seconds {
    double physics = 0, pictures = 0;
  };
  virtual Seconds seconds() const { return {}; }
};

// One with the policy inside, in the engine plugin: its number is 0.
class HostedSimulation : public Simulations {
 public:
  // Advances by one control step: plain steps of the engine.
  virtual void Step() = 0;
  // Decisions since the start.
  virtual int Decisions() const = 0;
};

// One more thing that results depend on, for run.json.
struct Setting {
  std::string key;
  std::variant<double, std::string> value;
};
using Settings = std::vector<Setting>;

class Task {
 public:
  virtual ~Task() = default;

  // As --task and run.json have it.
  virtual std::string name() const = 0;
  // What its measures are called; at least one.
  virtual std::vector<std::string> measures() const = 0;
  // Control steps of an episode, unless options say otherwise.
  virtual int max_steps() const = 0;
  // Seconds of a control step.
  virtual double control_period() const = 0;
  // What its results depend on beside the options of an evaluation: how it is simulated and drawn,
  // and its own disturbances.
  virtual Settings settings() const = 0;
  virtual Settings conditions() const = 0;
  // What draws the scenes in its inputs, if any.
  virtual const mjp::SceneDrawer* scene_drawer() const { return nullptr; }

  // How it draws each camera of a policy of `config`, as PictureSource::Looks; empty: not known.
  // Throws Error where it cannot.
  virtual std::vector<PictureLook> Looks(const mjp::PolicyConfig& /*config*/) const { return {}; }

  // Makes `count` simulations for `policy` beside them, with pictures where it runs. Throws Error
  // where task, policy and options do not fit.
  virtual std::unique_ptr<BatchSimulations> MakeBatch(const EvaluationOptions& options,
                                                      const mjp::Policy& policy,
                                                      int count) const = 0;
  // Throws Error where the plugin cannot run the task as its settings have it.
  virtual void CheckHosted() const = 0;
  // Makes a simulation with the policy inside. Called on any thread. `options` are as the policy
  // resolved them.
  virtual std::unique_ptr<HostedSimulation> MakeHosted(const EvaluationOptions& options,
                                                       const mjp::PolicyConfig& config) const = 0;
};

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_TASK_H_
