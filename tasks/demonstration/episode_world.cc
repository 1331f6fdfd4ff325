#include "tasks/demonstration/episode_world.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "plugin/state.h"
#include "tasks/evaluation/hosted_failure.h"

namespace mjp::app {
namespace {

constexpr int kMocap = mjSTATE_MOCAP_POS | mjSTATE_MOCAP_QUAT;

}  // namespace

EpisodeWorld::EpisodeWorld(std::shared_ptr<const TaskFile> file, std::unique_ptr<TaskCode> code)
    : file_(std::move(file)),
      code_(std::move(code)),
      view_(*file_),
      model_(CopyOfModel(file_->model())),
      data_(MakeData(model_.get())),
      numbers_(static_cast<size_t>(file_->policy().controls.action_size())) {}

std::vector<std::string> EpisodeWorld::measures() const {
  return code_ ? code_->measures() : file_->rules().measures();
}

void EpisodeWorld::Start(uint32_t seed) {
  if (code_) {
    code_->Start(seed, data_.get());
  } else {
    view_.Start(seed);
    view_.CopyStart(model_.get(), data_.get());
  }
  view_.Follow(model_.get(), data_.get());
}

void EpisodeWorld::Start(const EpisodeStart& start) {
  if (code_) throw BadInput("a task of code starts by seeds alone");
  Start(uint32_t{0});
  for (mjModel* model : {model_.get(), view_.model()}) {
    mjp::app::Start::CopyDrawn(start.look.get(), model);
  }
  mj_setState(model_.get(), data_.get(), start.state.data(), kStateWithoutPlugins);
  view_.Follow(model_.get(), data_.get());
}

void EpisodeWorld::PlaceMocap(std::span<const mjtNum> poses) {
  if (poses.empty()) return;
  mj_setState(model_.get(), data_.get(), poses.data(), kMocap);
}

std::vector<mjtNum> EpisodeWorld::MocapPoses() const {
  std::vector<mjtNum> poses(static_cast<size_t>(mj_stateSize(model_.get(), kMocap)));
  mj_getState(model_.get(), data_.get(), poses.data(), kMocap);
  return poses;
}

void EpisodeWorld::Act(std::span<const float> action) {
  std::ranges::copy(action, numbers_.begin());
  file_->policy().controls.Write(numbers_, data_.get());
  substep_ = 0;
  failure_.clear();
}

bool EpisodeWorld::Substep() {
  mj_step(model_.get(), data_.get());
  failure_ = PhysicsFailure(data_.get());
  return ++substep_ < file_->substeps() && failure_.empty();
}

void EpisodeWorld::Finish(StepOutcome& outcome) {
  outcome = {};
  outcome.failure = failure_;
  if (!outcome.failure.empty()) return;
  if (code_) {
    view_.Follow(model_.get(), data_.get());
    code_->Judge(data_.get(), outcome);
  } else {
    view_.Judge(model_.get(), data_.get(), outcome);
  }
}

void EpisodeWorld::Step(std::span<const float> action, StepOutcome& outcome) {
  Act(action);
  while (Substep()) {
  }
  Finish(outcome);
}

}  // namespace mjp::app
