#ifndef TASKS_PUSHT_EVALUATION_PUSHT_TASK_H_
#define TASKS_PUSHT_EVALUATION_PUSHT_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/evaluation/task.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// Push-T as an evaluation sees it. States are agent x, y, block x, y, angle (judge.h); actions are
// the agent's targets, pixels; its measure is the coverage.
class PushtTask : public Task {
 public:
  explicit PushtTask(const PushtOptions& options = {}) : options_(options) {}

  std::string name() const override;
  std::vector<std::string> measures() const override { return {"coverage"}; }
  int max_steps() const override { return kControlSteps; }
  double control_period() const override { return kSubsteps * kTimestep; }
  Settings settings() const override;
  Settings conditions() const override;
  const mjp::SceneDrawer* scene_drawer() const override;
  std::vector<mjp::PictureLook> Looks(const mjp::PolicyConfig& config) const override;

  std::unique_ptr<BatchSimulations> MakeBatch(const EvaluationOptions& options,
                                              const mjp::Policy& policy, int count) const override;
  void CheckHosted() const override;
  std::unique_ptr<HostedSimulation> MakeHosted(const EvaluationOptions& options,
                                               const mjp::PolicyConfig& config) const override;

 private:
  PushtOptions options_;
};

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EVALUATION_PUSHT_TASK_H_
