#include "tasks/mjcf/world.h"

#include <utility>

namespace mjp::app {
namespace {

constexpr int kWhole = mjSTATE_INTEGRATION & ~mjSTATE_PLUGIN;
constexpr int kMoving = mjSTATE_PHYSICS | mjSTATE_MOCAP_POS | mjSTATE_MOCAP_QUAT;

}  // namespace

TaskWorld::TaskWorld(const TaskFile& file, std::shared_ptr<mjModel> model)
    : file_(file),
      model_(model ? std::move(model)
                   : std::shared_ptr<mjModel>(CopyOfModel(file.model()).release(), ModelDeleter())),
      data_(MakeData(model_.get())),
      state_(static_cast<size_t>(mj_stateSize(model_.get(), kWhole))) {}

void TaskWorld::Start(uint32_t seed) {
  file_.start().Apply(seed, file_.model(), model_.get(), data_.get());
  held_ = 0;
}

void TaskWorld::CopyLook(mjModel* model) const {
  if (file_.start().changes_model() && model != model_.get()) Start::CopyDrawn(model_.get(), model);
}

void TaskWorld::CopyStart(const mjModel* model, mjData* data) const {
  mj_resetData(model, data);
  mj_getState(model_.get(), data_.get(), state_.data(), kWhole);
  mj_setState(model, data, state_.data(), kWhole);
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
  mj_getState(model, data, state_.data(), kWhole);
  mj_setState(model_.get(), data_.get(), state_.data(), kWhole);
  Update();
}

void TaskWorld::Judge(const mjModel* model, const mjData* data, StepOutcome& outcome) {
  Follow(model, data);
  file_.rules().Judge(data_->sensordata, held_, outcome);
}

std::vector<mjtNum> MovingState(const mjModel* model, const mjData* data) {
  std::vector<mjtNum> state(static_cast<size_t>(mj_stateSize(model, kMoving)));
  mj_getState(model, data, state.data(), kMoving);
  return state;
}

}  // namespace mjp::app
