#ifndef TASKS_MJCF_MJCF_TASK_H_
#define TASKS_MJCF_MJCF_TASK_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// A task file as an evaluation sees it. Its states are all that moves; the policy acts in the
// engine plugin or beside a batch, which gives the same episodes bit for bit.
class MjcfTask : public Task {
 public:
  explicit MjcfTask(std::shared_ptr<const TaskFile> file) : file_(std::move(file)) {}
  ~MjcfTask() override;

  std::string name() const override { return file_->name(); }
  std::vector<std::string> measures() const override { return file_->rules().measures(); }
  int max_steps() const override { return file_->rules().steps(); }
  double control_period() const override { return file_->period(); }
  Settings settings() const override { return {{"model", file_->hash()}}; }
  Settings conditions() const override { return {}; }
  std::vector<PictureLook> Looks(const PolicyConfig& config) const override;

  std::unique_ptr<BatchSimulations> MakeBatch(const EvaluationOptions& options,
                                              const mjp::Policy& policy, int count) const override;
  void CheckHosted() const override {}
  std::unique_ptr<HostedSimulation> MakeHosted(const EvaluationOptions& options,
                                               const mjp::PolicyConfig& config) const override;

 private:
  std::shared_ptr<const TaskFile> file_;
  mutable std::mutex mutex_;
  mutable ModelPtr model_;  // with the policy, made once
};

// Sets what `options` do not say to what the attributes of the file's policy say.
void TakeAttributes(const Config& config, EvaluationOptions& options);

}  // namespace mjp::app

#endif  // TASKS_MJCF_MJCF_TASK_H_
