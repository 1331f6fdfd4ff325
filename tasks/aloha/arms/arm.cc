#include "tasks/aloha/arms/arm.h"

#include <algorithm>

#include "base/error.h"

namespace mjp::app {
namespace {

constexpr std::array<const char*, kArmJoints> kJoints = {
    "waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate"};

// gym-aloha's PUPPET_GRIPPER_POSITION_CLOSE and _OPEN, metres.
constexpr double kClosed = 0.01844, kOpen = 0.058;

// The position servo that drives the joint `name`: the robots' actuators have no names.
int ServoOf(const mjModel* model, const std::string& name) {
  const int joint = FindId(model, mjOBJ_JOINT, name);
  for (int i = 0; i < model->nu; ++i) {
    if (model->actuator_trntype[i] == mjTRN_JOINT && model->actuator_trnid[2 * i] == joint &&
        model->actuator_gainprm[mjNGAIN * i] > 0) {
      return i;
    }
  }
  throw BadInput("the model has no position servo on joint \"" + name +
                 "\"; see models/aloha_transfer_cube.xml");
}

}  // namespace

int FindId(const mjModel* model, mjtObj type, const std::string& name) {
  const int id = mj_name2id(model, type, name.c_str());
  if (id < 0) {
    throw BadInput("the model has no " + std::string(mju_type2Str(type)) + " \"" + name +
                   "\"; see models/aloha_transfer_cube.xml");
  }
  return id;
}

Arm FindArm(const mjModel* model, const std::string& side) {
  const std::string robot = "vx300s_" + side;
  Arm arm;
  for (int i = 0; i < kArmJoints; ++i) {
    const std::string name = robot + "/" + kJoints[i];
    const int joint = FindId(model, mjOBJ_JOINT, name);
    arm.qpos[i] = model->jnt_qposadr[joint];
    arm.dof[i] = model->jnt_dofadr[joint];
    arm.low[i] = model->jnt_range[2 * joint];
    arm.high[i] = model->jnt_range[2 * joint + 1];
    const int servo = ServoOf(model, name);
    arm.stiffness[i] = model->actuator_gainprm[mjNGAIN * servo];
    arm.servos[i] = model->actuator_ctrladr[servo];
  }
  std::copy_n(model->body_pos + 3 * FindId(model, mjOBJ_BODY, robot), 3, arm.base);
  arm.tool = FindId(model, mjOBJ_SITE, "cali_" + side + "_site1");
  arm.finger = model->jnt_qposadr[FindId(model, mjOBJ_JOINT, robot + "/left_finger")];
  arm.finger_geoms = {FindId(model, mjOBJ_GEOM, robot + "/10_left_gripper_finger"),
                      FindId(model, mjOBJ_GEOM, robot + "/10_right_gripper_finger")};
  for (int i = 0; i < 2; ++i) {
    const std::string finger = robot + (i == 0 ? "/left_finger" : "/right_finger");
    arm.finger_servos[i] = model->actuator_ctrladr[ServoOf(model, finger)];
  }
  return arm;
}

double OpeningOf(const Arm& arm, const mjtNum* qpos) {
  return (qpos[arm.finger] - kClosed) / (kOpen - kClosed);
}

double FingerAt(double opening) { return opening * (kOpen - kClosed) + kClosed; }

JointAngles AnglesOf(const Arm& arm, const mjtNum* qpos) {
  JointAngles angles;
  for (int i = 0; i < kArmJoints; ++i) angles[i] = qpos[arm.qpos[i]];
  return angles;
}

}  // namespace mjp::app
