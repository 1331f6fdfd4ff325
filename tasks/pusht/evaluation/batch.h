#ifndef TASKS_PUSHT_EVALUATION_BATCH_H_
#define TASKS_PUSHT_EVALUATION_BATCH_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/evaluation/task.h"
#include "tasks/pusht/environments.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/observation.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

// Simulations of Push-T with the policy beside them.
class PushtBatch : public BatchSimulations {
 public:
  // Throws Error as Observer and MakeEnvironments do.
  PushtBatch(const PushtOptions& options, const EvaluationOptions& evaluation,
             const mjp::PolicyConfig& config, int count);

  void Start(int i, uint32_t seed) override;
  std::span<const double> State(int i) const override { return robots_[i].numbers; }
  std::span<const double> PreviousState(int i) const override { return robots_[i].previous; }
  void Judge(int i, StepOutcome& outcome) const override;
  std::unique_ptr<EpisodeVideo> MakeVideo(int i, const std::string& folder,
                                          const EpisodeResult& episode) override;
  std::vector<double> HeldAction(int i) const override;
  void Disturb(int i, uint32_t seed, int tick) override;
  void Step(std::span<const int> ids, std::span<const double> actions) override;
  void ClearInput() override { observer_.Clear(); }
  void AddInput(int i, uint32_t seed, int tick, uint32_t decision) override;
  mjp::PolicyInput Input() override;
  Seconds seconds() const override { return seconds_; }

 private:
  struct Robot {
    std::vector<Snapshot> history;  // the last n_obs_steps control steps, oldest first
    StateNumbers numbers, previous;
  };
  Snapshot Take(int i) const;

  PushtOptions options_;
  ModelPtr model_;
  Scene scene_;
  const std::optional<Conditions> seen_;  // of videos
  Observer observer_;
  std::unique_ptr<Environments> environments_;
  int observed_;  // control steps that the policy looks at
  std::vector<Robot> robots_;
  std::vector<Target> targets_;
  Seconds seconds_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EVALUATION_BATCH_H_
