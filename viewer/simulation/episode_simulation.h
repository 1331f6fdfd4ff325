#ifndef VIEWER_SIMULATION_EPISODE_SIMULATION_H_
#define VIEWER_SIMULATION_EPISODE_SIMULATION_H_

#include <mujoco/mujoco.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/physics/scene.h"
#include "viewer/simulation/simulation.h"
#include "viewer/snapshot.h"

namespace mjp::app {

// One Push-T episode after the other: those that `mjpolicy evaluate` runs, bit for bit.
class EpisodeSimulation : public Simulation {
 public:
  // Throws Error for a model that is not Push-T, and as Policy::Create does.
  EpisodeSimulation(ModelPtr model, std::shared_ptr<const mjp::Checkpoint> checkpoint,
                    const mjp::PolicyOptions& options, uint32_t seed);

  void Restart(uint32_t seed) override;
  void Seek(int step) override;
  void SetOptions(const mjp::PolicyOptions& options) override { SetPolicy(checkpoint_, options); }
  void SetCheckpoint(const std::string& directory) override;
  void Advance() override;
  void Fill(SimSnapshot& snapshot) const override;

  uint32_t seed() const override { return result_.seed; }
  int step() const override { return result_.steps; }
  bool finished() const override { return finished_; }
  double period() const override { return kSubsteps * kTimestep; }

 private:
  // All that an episode needs to go on from a control step.
  struct Moment {
    std::vector<mjtNum> physics;  // mjSTATE_INTEGRATION
    Snapshot observed;
    EpisodeResult result;
    StateHash hash;
    float coverage;
  };

  void SetPolicy(std::shared_ptr<const mjp::Checkpoint> checkpoint, mjp::PolicyOptions options);
  std::shared_ptr<DecisionRecord> Decide();
  bool AskAgain(const DecisionRecord& record, uint32_t noise, mjp::PolicyOutput& output) override;
  void FinishControlStep();
  void Keep();
  std::string Failure() const;

  Scene scene_;
  PushtOptions options_;
  PushtTask task_;
  std::unique_ptr<mjp::Policy> policy_;
  std::unique_ptr<Observer> observer_;
  int action_steps_ = 0;
  std::optional<mjp::EventReplanning> replanning_;
  mjp::PolicyOutput output_;
  bool finished_ = false;
  EpisodeResult result_;
  StateHash hash_;
  std::vector<Moment> moments_;  // one per control step of this episode, the start first
  std::vector<Snapshot> history_;
};

// Loads a checkpoint directory, or makes the random-weight network that stands in for the
// checkpoint this program is shipped with where that is missing (`directory` empty).
std::shared_ptr<const mjp::Checkpoint> OpenCheckpoint(const std::string& directory);

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_EPISODE_SIMULATION_H_
