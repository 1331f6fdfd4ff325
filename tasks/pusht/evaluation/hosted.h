#ifndef TASKS_PUSHT_EVALUATION_HOSTED_H_
#define TASKS_PUSHT_EVALUATION_HOSTED_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tasks/evaluation/task.h"
#include "tasks/pusht/evaluation/judge.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/scene.h"

namespace mjp::app {

// One simulation of Push-T with the policy in the engine plugin.
class PushtHosted : public HostedSimulation {
 public:
  // Throws Error where the plugin refuses the options or the checkpoint.
  PushtHosted(const PushtOptions& options, const EvaluationOptions& evaluation,
              const mjp::PolicyConfig& config);

  void Start(int i, uint32_t seed) override;
  std::span<const double> State(int) const override { return numbers_; }
  void Judge(int i, StepOutcome& outcome) const override;
  std::unique_ptr<EpisodeVideo> MakeVideo(int i, const std::string& folder,
                                          const EpisodeResult& episode) override;
  void Step() override;
  int Decisions() const override;

 private:
  PushtOptions options_;
  ModelPtr model_;
  Scene scene_;
  const std::optional<Conditions> seen_;  // of videos
  DataPtr data_;
  StateNumbers numbers_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EVALUATION_HOSTED_H_
