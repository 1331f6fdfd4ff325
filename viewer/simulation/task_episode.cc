#include "viewer/simulation/task_episode.h"

#include <vector>

#include "tasks/mjcf/mjcf_task.h"

namespace mjp::app {

std::unique_ptr<TaskEpisode> TaskEpisode::Open(const std::string& path, const mjModel* model) {
  return std::unique_ptr<TaskEpisode>(SaysWholeTask(model) ? new TaskEpisode(path) : nullptr);
}

TaskEpisode::TaskEpisode(const std::string& path)
    : file_(std::make_shared<const TaskFile>(path)), world_(*file_) {}

void TaskEpisode::Start(uint32_t seed) {
  world_.Start(seed);
  verdict_ = {};
  verdict_.result = NewEpisode(MjcfTask(file_), 0, seed);
}

void TaskEpisode::Judge(const mjModel* model, const mjData* data, const std::string& failure) {
  StepOutcome outcome;
  outcome.failure = failure;
  if (failure.empty()) world_.Judge(model, data, outcome);
  const std::vector<mjtNum> state = MovingState(model, data);
  verdict_.over =
      !AccountStep(outcome, state, file_->rules().steps(), verdict_.result, verdict_.hash);
  verdict_.reward = outcome.reward;
  verdict_.held = world_.held();
}

void TaskEpisode::Resume(const Verdict& verdict) {
  verdict_ = verdict;
  world_.Hold(verdict.held);
}

}  // namespace mjp::app
