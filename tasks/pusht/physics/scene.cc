#include "tasks/pusht/physics/scene.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text_stream.h"

namespace mjp::app {
namespace {

std::string Text(const char* name) { return "\"" + std::string(name) + "\""; }

// address in qpos of the joint `name`
int QposAddress(const mjModel* model, const char* name, mjtJoint type, const char* what) {
  const int joint = mj_name2id(model, mjOBJ_JOINT, name);
  if (joint < 0 || model->jnt_type[joint] != type) {
    throw mjp::BadInput("the model has no " + std::string(what) + " joint " + Text(name) +
                        ": Push-T needs slide joints ax, ay, bx, by and the hinge joint bt; " +
                        "see models/pusht.xml");
  }
  return model->jnt_qposadr[joint];
}

// address in ctrl of the actuator `name`
int CtrlAddress(const mjModel* model, const char* name) {
  const int actuator = mj_name2id(model, mjOBJ_ACTUATOR, name);
  if (actuator < 0 || model->actuator_ctrlnum[actuator] != 1) {
    throw mjp::BadInput("the model has no actuator " + Text(name) + " with one control: Push-T " +
                        "needs actuators ax and ay; see models/pusht.xml");
  }
  return model->actuator_ctrladr[actuator];
}

}  // namespace

Scene::Scene(const mjModel* model)
    : model_(model),
      agent_x_(QposAddress(model, "ax", mjJNT_SLIDE, "slide")),
      agent_y_(QposAddress(model, "ay", mjJNT_SLIDE, "slide")),
      block_x_(QposAddress(model, "bx", mjJNT_SLIDE, "slide")),
      block_y_(QposAddress(model, "by", mjJNT_SLIDE, "slide")),
      block_angle_(QposAddress(model, "bt", mjJNT_HINGE, "hinge")),
      target_x_(CtrlAddress(model, "ax")),
      target_y_(CtrlAddress(model, "ay")) {
  if (model->opt.timestep != kTimestep) {
    mjp::TextWriter text;
    text << "the model's timestep is " << model->opt.timestep << " s: Push-T needs " << kTimestep
         << " s, set <option timestep=\"" << kTimestep << "\"/>";
    throw mjp::BadInput(text.str());
  }
}

// The joints bx, by hold the block's centre of gravity, the state its origin.
State Scene::FromQpos(const mjtNum* qpos) const {
  const double angle = qpos[block_angle_];
  State state;
  state.agent_x = qpos[agent_x_] * kPixelsPerUnit;
  state.agent_y = qpos[agent_y_] * kPixelsPerUnit;
  state.block_x = qpos[block_x_] * kPixelsPerUnit + kCenterOfGravityY * std::sin(angle);
  state.block_y = qpos[block_y_] * kPixelsPerUnit - kCenterOfGravityY * std::cos(angle);
  state.block_angle = angle;
  return state;
}

void Scene::ToQpos(const State& state, mjtNum* qpos) const {
  const double angle = state.block_angle;
  qpos[agent_x_] = state.agent_x / kPixelsPerUnit;
  qpos[agent_y_] = state.agent_y / kPixelsPerUnit;
  qpos[block_x_] = (state.block_x - kCenterOfGravityY * std::sin(angle)) / kPixelsPerUnit;
  qpos[block_y_] = (state.block_y + kCenterOfGravityY * std::cos(angle)) / kPixelsPerUnit;
  qpos[block_angle_] = angle;
}

void Scene::ToCtrl(double target_x, double target_y, mjtNum* ctrl) const {
  ctrl[target_x_] = target_x / kPixelsPerUnit;
  ctrl[target_y_] = target_y / kPixelsPerUnit;
}

void Scene::PushBlock(double dx, double dy, mjtNum* qpos) const {
  qpos[block_x_] += dx / kPixelsPerUnit;
  qpos[block_y_] += dy / kPixelsPerUnit;
}

void Scene::SetStart(const State& start, mjData* data) const {
  mj_resetData(model_, data);
  ToQpos(start, data->qpos);
  ToCtrl(start.agent_x, start.agent_y, data->ctrl);

  // the model is shared between threads: switch sensors and plugins off in a copy of its header. A
  // policy that is called without its sensors would warn of them
  mjModel asleep = *model_;
  asleep.opt.disableflags |= mjDSBL_SENSOR;
  asleep.nplugin = 0;
  mj_step(&asleep, data);

  constexpr int kKept = mjSTATE_PHYSICS | mjSTATE_CTRL;
  std::vector<mjtNum> settled(mj_stateSize(model_, kKept));
  mj_getState(model_, data, settled.data(), kKept);
  mj_resetData(model_, data);
  mj_setState(model_, data, settled.data(), kKept);
}

}  // namespace mjp::app
