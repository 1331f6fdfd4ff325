#include "tasks/pusht/physics/batch_physics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace mjp::app {
namespace {

// A copy of the model that keeps a diverged state as it is, instead of starting over unseen.
ModelPtr CopyWithoutAutoReset(const mjModel* model) {
  ModelPtr copy(mj_copyModel(nullptr, model));
  if (!copy) throw mjp::EnvironmentError("MuJoCo cannot copy the model");
  copy->opt.disableflags |= mjDSBL_AUTORESET;
  return copy;
}

int ComponentOffset(mjBatch* batch, mjtState component) {
  return static_cast<int>(mjb_stateComponent(batch, component, nullptr) - mjb_state(batch));
}

}  // namespace

BatchPhysics::BatchPhysics(const mjModel* model, int count, int threads)
    : model_(CopyWithoutAutoReset(model)),
      scene_(model_.get()),
      scratch_(MakeData(model_.get())),
      failures_(count) {
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = threads;
  char reason[1000] = "";
  batch_.reset(mjb_makeBatch(model_.get(), count, &config, reason, sizeof(reason)));
  if (!batch_) {
    throw mjp::EnvironmentError("MuJoCo cannot make a batch of " + std::to_string(count) +
                                " simulations: " + reason);
  }
  qpos_ = ComponentOffset(batch_.get(), mjSTATE_QPOS);
  ctrl_ = ComponentOffset(batch_.get(), mjSTATE_CTRL);
}

mjtNum* BatchPhysics::Row(int i) const {
  return mjb_state(batch_.get()) + static_cast<size_t>(i) * mjb_nstate(batch_.get());
}

void BatchPhysics::Reset(int i, const State& start) {
  scene_.SetStart(start, scratch_.get());
  mj_getState(model_.get(), scratch_.get(), Row(i), mjSTATE_INTEGRATION);
  mjWarningStat* warnings = mjb_warning(batch_.get()) + static_cast<size_t>(i) * mjNWARNING;
  std::fill_n(warnings, mjNWARNING, mjWarningStat{});
  failures_[i].clear();
}

void BatchPhysics::Step(std::span<const int> ids, std::span<const Target> targets) {
  live_.clear();
  for (size_t k = 0; k < ids.size(); ++k) {
    const int i = ids[k];
    if (!failures_[i].empty()) continue;
    if (!std::isfinite(targets[k].x) || !std::isfinite(targets[k].y)) {
      failures_[i] = "the target is not finite";
      continue;
    }
    scene_.ToCtrl(targets[k].x, targets[k].y, Row(i) + ctrl_);
    live_.push_back(i);
  }
  if (live_.empty()) return;
  std::sort(live_.begin(), live_.end());  // as mjb_step wants them
  mjb_step(batch_.get(), live_.data(), static_cast<int>(live_.size()), kSubsteps, mjSTAGE_NONE);
  for (const int i : live_) failures_[i] = FindFailure(i);
}

State BatchPhysics::Read(int i) const { return scene_.FromQpos(Row(i) + qpos_); }

void BatchPhysics::ReadQpos(int i, mjtNum* qpos) const {
  std::copy_n(Row(i) + qpos_, model_->nq, qpos);
}

void BatchPhysics::Push(int i, double dx, double dy) { scene_.PushBlock(dx, dy, Row(i) + qpos_); }

std::string BatchPhysics::FindFailure(int i) const {
  if (mjb_status(batch_.get())[i] != 0) {
    return std::string("the physics failed: ") + mjb_error(batch_.get(), i);
  }
  const mjWarningStat* warnings = mjb_warning(batch_.get()) + static_cast<size_t>(i) * mjNWARNING;
  for (int kind = 0; kind < mjNWARNING; ++kind) {
    if (warnings[kind].number > 0) {
      return std::string("the physics diverged: ") +
             mju_warningText(kind, static_cast<size_t>(warnings[kind].lastinfo));
    }
  }
  const mjtNum* qpos = Row(i) + qpos_;
  const bool finite =
      std::all_of(qpos, qpos + model_->nq, [](mjtNum value) { return std::isfinite(value); });
  return finite ? "" : "the physics diverged: a position is not finite";
}

}  // namespace mjp::app
