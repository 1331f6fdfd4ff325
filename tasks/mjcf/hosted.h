#ifndef TASKS_MJCF_HOSTED_H_
#define TASKS_MJCF_HOSTED_H_

#include <memory>
#include <string>
#include <vector>

#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"

namespace mjp::app {

// One simulation of a task file with the policy in the engine plugin, which steps as any host
// would.
class MjcfHosted : public HostedSimulation {
 public:
  // `model` is the file's, compiled with its policy; it is copied.
  MjcfHosted(std::shared_ptr<const TaskFile> file, const mjModel* model);

  void Start(int i, uint32_t seed) override;
  std::span<const double> State(int) const override { return state_; }
  void Judge(int i, StepOutcome& outcome) const override;
  std::unique_ptr<EpisodeVideo> MakeVideo(int i, const std::string& folder,
                                          const EpisodeResult& episode) override;
  void Step() override;
  int Decisions() const override;

  mjModel* model() { return model_.get(); }
  mjData* data() { return data_.get(); }

 private:
  std::shared_ptr<const TaskFile> file_;
  TaskWorld world_;
  ModelPtr model_;
  DataPtr data_;
  std::vector<double> state_;
  StepOutcome outcome_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_HOSTED_H_
