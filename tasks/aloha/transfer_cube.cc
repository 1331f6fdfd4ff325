#include "tasks/aloha/transfer_cube.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "tasks/physics/random_state.h"

namespace mjp::app {
namespace {

constexpr int kStepsOfEngine = 10;  // of 2 ms each

int SensorAddress(const mjModel* model, const char* name) {
  return model->sensor_adr[FindId(model, mjOBJ_SENSOR, name)];
}

}  // namespace

TransferCube::TransferCube()
    : model_(LoadModel(ModelPath("aloha/transfer_cube.xml"))),
      data_(MakeData(model_.get())),
      scene_(FindCubeScene(model_.get())),
      home_(FindId(model_.get(), mjOBJ_KEY, "home")),
      cube_(model_->jnt_qposadr[FindId(model_.get(), mjOBJ_JOINT, "red_box_joint")]),
      right_(SensorAddress(model_.get(), "right")),
      left_(SensorAddress(model_.get(), "left")),
      table_(SensorAddress(model_.get(), "table")) {
  model_->opt.disableflags |= mjDSBL_AUTORESET;
}

void TransferCube::Start(uint32_t seed) {
  RandomState random(seed);
  const double x = 0.2 * random.RandomSample();
  const double y = 0.4 + (0.6 - 0.4) * random.RandomSample();
  Start(std::array<mjtNum, 7>{x, y, 0.05, 1, 0, 0, 0});
}

void TransferCube::Start(std::span<const mjtNum, 7> pose) {
  mj_resetDataKeyframe(model_.get(), data_.get(), home_);
  std::ranges::copy(pose, data_->qpos + cube_);
  mj_forward(model_.get(), data_.get());
}

int TransferCube::Step(const AlohaNumbers& action) {
  for (const int side : {kLeft, kRight}) {
    const Arm& arm = scene_.arms[side];
    for (int i = 0; i < kArmJoints; ++i) data_->ctrl[arm.servos[i]] = action[7 * side + i];
    const double finger = FingerAt(action[7 * side + kArmJoints]);
    data_->ctrl[arm.finger_servos[0]] = finger;
    data_->ctrl[arm.finger_servos[1]] = -finger;
  }
  for (int i = 0; i < kStepsOfEngine; ++i) mj_step(model_.get(), data_.get());
  mj_step1(model_.get(), data_.get());
  for (const int bad : {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL}) {
    if (data_->warning[bad].number == 0) continue;
    throw BadInput("the physics of " + std::string(model_->names) + " diverged at " +
                   std::to_string(data_->time) + " s: an action was no number, or far too large");
  }
  return Reward();
}

int TransferCube::Reward() const {
  const bool table = data_->sensordata[table_] > 0;
  if (data_->sensordata[left_] > 0) return table ? 3 : 4;
  if (data_->sensordata[right_] > 0) return table ? 1 : 2;
  return 0;
}

bool TransferCube::HandedOver() const {
  const Situation now = ReadSituation(scene_, model_.get(), data_.get());
  return now.holds[kLeft] && !now.touches[kRight] && !now.on_table;
}

AlohaNumbers TransferCube::State() const {
  AlohaNumbers state;
  for (const int side : {kLeft, kRight}) {
    const Arm& arm = scene_.arms[side];
    std::ranges::copy(AnglesOf(arm, data_->qpos), state.begin() + 7 * side);
    state[7 * side + kArmJoints] = OpeningOf(arm, data_->qpos);
  }
  return state;
}

}  // namespace mjp::app
