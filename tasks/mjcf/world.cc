#include "tasks/mjcf/world.h"

#include <utility>

#include "plugin/state.h"

namespace mjp::app {

TaskWorld::TaskWorld(const TaskFile& file, std::shared_ptr<mjModel> model)
    : file_(file),
      model_(model ? std::move(model)
                   : std::shared_ptr<mjModel>(CopyOfModel(file.model()).release(), ModelDeleter())),
      data_(MakeData(model_.get())),
      state_(static_cast<size_t>(mj_stateSize(model_.get(), kStateWithoutPlugins))) {}

void TaskWorld::Start(uint32_t seed) {
  file_.start().Apply(seed, file_.model(), model_.get(), data_.get());
  held_ = 0;
}

void TaskWorld::CopyLook(mjModel* model) const {
  if (file_.start().changes_model() && model != model_.get()) Start::CopyDrawn(model_.get(), model);
}

void TaskWorld::CopyStart(mjModel* model, mjData* data) const {
  CopyLook(model);
  CopyState(model, data);
}

void TaskWorld::CopyState(const mjModel* model, mjData* data) const {
  mj_resetData(model, data);
  mj_getState(model_.get(), data_.get(), state_.data(), kStateWithoutPlugins);
  mj_setState(model, data, state_.data(), kStateWithoutPlugins);
}

void TaskWorld::Update() {
  if (file_.rules().stage() == mjSTAGE_ACC) {
    mj_forward(model_.get(), data_.get());
  } else {
    mj_step1(model_.get(), data_.get());
  }
}

void TaskWorld::Judge(StepOutcome& outcome) {
  Update();
  file_.rules().Judge(data_->sensordata, held_, outcome);
}

void TaskWorld::Follow(const mjModel* model, const mjData* data) {
  mj_getState(model, data, state_.data(), kStateWithoutPlugins);
  mj_setState(model_.get(), data_.get(), state_.data(), kStateWithoutPlugins);
  Update();
}

void TaskWorld::Judge(const mjModel* model, const mjData* data, StepOutcome& outcome) {
  Follow(model, data);
  file_.rules().Judge(data_->sensordata, held_, outcome);
}

std::vector<mjtNum> MovingState(const mjModel* model, const mjData* data) {
  std::vector<mjtNum> state(static_cast<size_t>(mj_stateSize(model, kMovingState)));
  mj_getState(model, data, state.data(), kMovingState);
  return state;
}

}  // namespace mjp::app
