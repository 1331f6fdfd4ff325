#ifndef VIEWER_SIMULATION_MODEL_SIMULATION_H_
#define VIEWER_SIMULATION_MODEL_SIMULATION_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/policies/cache.h"
#include "plugin/policies/decision_cache.h"
#include "plugin/policy_instance.h"
#include "plugin/score.h"
#include "policy/policy.h"
#include "viewer/simulation/open_simulation.h"
#include "viewer/simulation/task_episode.h"

namespace mjp::app {

// Any model, run as every host runs it: its policy, if it has one, is the plugin. The first
// instance is the one that is looked at. Of a task file the episodes are played, as an evaluation
// starts and judges them; any other simulation goes on until it is stopped.
class ModelSimulation : public Simulation {
 public:
  // Throws Error with the compiler's text for a model that does not compile, or whose policy does
  // not fit.
  ModelSimulation(const std::string& file, const SimulationRequest& request);

  // A task starts as its episode `seed` does, another model at its first keyframe.
  void Restart(uint32_t seed) override;
  void Seek(int step) override;
  void SetOptions(const mjp::PolicyOptions& options) override;
  void SetCheckpoint(const std::string& directory) override;
  void Advance() override;
  void Fill(SimSnapshot& snapshot) const override;

  uint32_t seed() const override { return seed_; }
  int step() const override { return step_; }
  bool finished() const override { return task_ && task_->verdict().over; }
  double period() const override { return substeps_ * timestep(); }

 private:
  // What the attributes of the model are overruled by.
  struct Choice {
    std::string checkpoint;                             // directory; empty: theirs
    std::function<void(mjp::PolicyOptions&)> overrule;  // changes what is not to be as they say
  };
  // The policy as it was made for the plugin.
  struct Made {
    std::shared_ptr<const mjp::Checkpoint> checkpoint;
    mjp::PolicyOptions options;
    std::string description;
  };
  struct Moment {
    std::vector<mjtNum> physics;
    float score;
    TaskEpisode::Verdict verdict;  // of a task
  };

  struct SceneDeleter {
    void operator()(mjvScene* scene) const;
  };

  void Load(const Choice& choice);
  void DescribePolicy();
  // The policy of the instance in `data`; null where the model has none. Throws Error where it
  // could not be made.
  mjp::PolicyInstance* PolicyIn(const mjData* data) const;
  // Brings the simulation to the start of a task's episode of `seed`. Throws Error where that has
  // no policy, and the episode before goes on.
  void StartTask(uint32_t seed);
  // Simulates another model, with what the task's start draws of it.
  void TakeModelOfStart();
  void Keep();
  void NoteDecision(double step_began);
  void CompleteDecision();
  void FinishControlStep();
  bool AskAgain(const DecisionRecord& record, uint32_t noise, mjp::PolicyOutput& output) override;

  std::string file_;
  Choice choice_;
  mjp::OwnPolicyMakers makers_;  // of choice_; in place whenever data is made
  std::shared_ptr<Made> made_;
  int instance_ = -1;                      // in the model; -1: no policy
  mjp::PolicyInstance* policy_ = nullptr;  // in data_
  mjp::Score score_;                       // empty: the model has none
  std::unique_ptr<TaskEpisode> task_;      // null: the model is no task file
  int substeps_ = 1;
  uint32_t seed_ = 0;
  int step_ = 0, decisions_ = 0;
  bool under_way_ = false;                   // the newest decision's chunk is not there yet
  double decided_ = 0;                       // seconds of deciding in this control step
  std::vector<double> before_;               // qpos at the begin of the control step
  std::unique_ptr<mjp::Decision> question_;  // what the newest decision was made from; or null
  std::unique_ptr<mjp::Policy> explainer_;   // makes decisions again, with all that is inside
  std::deque<Moment> moments_;               // one per control step, the newest last
  int first_moment_ = 0;                     // control step of the oldest
  std::shared_ptr<const std::vector<float>> scores_;  // one per control step
  std::unique_ptr<mjvScene, SceneDeleter> scene_;     // collects decoration
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_MODEL_SIMULATION_H_
