#include "tasks/mjcf/hosted.h"

#include <utility>

#include "plugin/state.h"
#include "tasks/evaluation/hosted_failure.h"
#include "tasks/mjcf/video.h"

namespace mjp::app {
MjcfHosted::MjcfHosted(std::shared_ptr<const TaskFile> file, const mjModel* model)
    : file_(std::move(file)),
      world_(*file_),
      model_(CopyOfModel(model)),
      data_(MakeData(model_.get())) {}

void MjcfHosted::Start(int, uint32_t seed) {
  world_.Start(seed);
  world_.CopyStart(model_.get(), data_.get());
  SetEpisodeSeed(model_.get(), data_.get(), seed);
  state_ = MovingState(model_.get(), data_.get());
}

void MjcfHosted::Step() {
  outcome_ = {};
  // what comes after a failure would be nothing but warnings
  for (int i = 0; i < file_->substeps() && outcome_.failure.empty(); ++i) {
    mj_step(model_.get(), data_.get());
    outcome_.failure = HostedFailure(model_.get(), data_.get());
  }
  state_ = MovingState(model_.get(), data_.get());
  if (outcome_.failure.empty()) world_.Judge(model_.get(), data_.get(), outcome_);
}

void MjcfHosted::Judge(int, StepOutcome& outcome) const { outcome = outcome_; }

int MjcfHosted::Decisions() const {
  return static_cast<int>(PolicyDecisions(model_.get(), data_.get()));
}

std::unique_ptr<EpisodeVideo> MjcfHosted::MakeVideo(int, const std::string& folder,
                                                    const EpisodeResult& episode) {
  return std::make_unique<WorldVideo>(folder + "/eval_episode_" + std::to_string(episode.index),
                                      VideoCamera(file_->model(), file_->policy().config),
                                      file_->period(), world_.model(), world_.data());
}

}  // namespace mjp::app
