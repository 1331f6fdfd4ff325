#ifndef VIEWER_SIMULATION_H_
#define VIEWER_SIMULATION_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "task/evaluation.h"
#include "task/observation.h"
#include "task/scene.h"
#include "viewer/snapshot.h"

namespace pusht {

// One Push-T episode after the other, physics step by physics step: the episodes that
// `pusht evaluate` runs, bit for bit, with everything kept that can be looked at. Not thread-safe.
class Simulation {
 public:
  // `model` is shared with the window, which only reads it. Throws Error as Policy::Create does.
  Simulation(std::shared_ptr<const mjModel> model, std::shared_ptr<const dp::Checkpoint> checkpoint,
             const dp::PolicyOptions& options, uint32_t seed);

  // Starts the episode with this seed. The log of decisions goes on.
  void Restart(uint32_t seed);
  // Goes back to before control step `step` of this episode; later ones are forgotten.
  void Seek(int step);
  // From the next decision on. Throws Error, and goes on with the policy it has.
  void SetPolicy(std::shared_ptr<const dp::Checkpoint> checkpoint,
                 const dp::PolicyOptions& options);
  // Whether decisions keep the chunk after each denoising step.
  void SetTracing(bool on) { tracing_ = on; }
  void SetPerturb(const PerturbCommand& perturb);
  // Adds `count` chunks from other noise to the last decision. Throws Error as Policy::Infer does.
  void Sample(int count);

  // Takes a decision where one is due, then one physics step. Nothing once the episode is over.
  // Throws Error as Policy::Infer does.
  void Advance();

  int step() const { return result_.steps; }  // control steps taken
  bool finished() const { return finished_; }
  bool between_control_steps() const { return substep_ == 0; }
  double timestep() const { return model_->opt.timestep; }
  const std::shared_ptr<const dp::Checkpoint>& checkpoint() const { return checkpoint_; }
  // Fills all of a snapshot but what its thread knows.
  void Fill(SimSnapshot& snapshot) const;

 private:
  // All that an episode needs to go on from a control step.
  struct Moment {
    std::vector<mjtNum> physics;  // mjSTATE_INTEGRATION
    Snapshot observed;
    EpisodeResult result;
    StateHash hash;
    float coverage;
  };

  void Decide();
  std::vector<uint8_t> Frames() const;
  void AddPhysicsTime();
  void FinishControlStep();
  void Keep();
  std::string Failure() const;
  DecisionLog& EditLog();

  std::shared_ptr<const mjModel> model_;
  ModelPtr own_model_;  // without the automatic reset, as evaluations have it
  Scene scene_;
  DataPtr data_;
  EvaluationOptions options_;
  std::shared_ptr<const dp::Checkpoint> checkpoint_;
  std::unique_ptr<dp::Policy> policy_;
  std::unique_ptr<Observer> observer_;
  std::shared_ptr<const PolicyInfo> info_;
  int action_steps_ = 0;
  dp::PolicyOutput output_;
  mjvPerturb perturb_;
  bool tracing_ = true, finished_ = false, disturbed_ = false;
  int substep_ = 0;
  dp::StageTimes::Span physics_time_;  // of this control step: begin, and begin + busy time
  EpisodeResult result_;
  StateHash hash_;
  std::vector<Moment> moments_;  // one per control step of this episode, the start first
  std::vector<Snapshot> history_;
  std::shared_ptr<const DecisionLog> log_;
};

// Loads a checkpoint directory, or makes the random-weight network that stands in for the
// checkpoint this program is shipped with where that is missing (`directory` empty).
std::shared_ptr<const dp::Checkpoint> OpenCheckpoint(const std::string& directory);

}  // namespace pusht

#endif  // VIEWER_SIMULATION_H_
