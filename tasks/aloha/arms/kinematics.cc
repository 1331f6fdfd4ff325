#include "tasks/aloha/arms/kinematics.h"

#include <algorithm>

namespace mjp::app {
namespace {

constexpr mjtNum kDamping = 0.02;
constexpr mjtNum kLargestTurn = 0.2;                    // of a joint in one iteration, radians
constexpr mjtNum kEnough = 1e-4, kEnoughTurn = 1e-3;    // metres, radians: iterations end
constexpr mjtNum kReached = 1e-3, kReachedTurn = 1e-2;  // metres, radians: the tool is there

}  // namespace

Kinematics::Kinematics(const mjModel* model)
    : model_(model), data_(MakeData(model)), jacobian_(6 * model->nv), force_(model->nv) {}

void Kinematics::Place(const Arm& arm, const JointAngles& angles) {
  for (int i = 0; i < kArmJoints; ++i) data_->qpos[arm.qpos[i]] = angles[i];
}

Frame Kinematics::ToolPose(const Arm& arm, const JointAngles& angles) {
  Place(arm, angles);
  mj_kinematics(model_, data_.get());
  Frame pose;
  std::copy_n(data_->site_xpos + 3 * arm.tool, 3, pose.pos);
  mju_mat2Quat(pose.quat, data_->site_xmat + 9 * arm.tool);
  return pose;
}

bool Kinematics::Solve(const Arm& arm, const Frame& target, int iterations, JointAngles& angles) {
  const int nv = model_->nv;
  for (int k = 0;; ++k) {
    const Frame pose = ToolPose(arm, angles);
    mjtNum error[6], turn[3];
    mju_sub3(error, target.pos, pose.pos);
    mju_subQuat(turn, target.quat, pose.quat);
    mju_rotVecQuat(error + 3, turn, pose.quat);
    const mjtNum distance = mju_norm3(error), angle = mju_norm3(error + 3);
    if ((distance < kEnough && angle < kEnoughTurn) || k == iterations)
      return distance < kReached && angle < kReachedTurn;
    mj_comPos(model_, data_.get());
    mj_jacSite(model_, data_.get(), jacobian_.data(), jacobian_.data() + 3 * nv, arm.tool);
    // step = J' (J J' + damping^2)^-1 error
    mjtNum columns[6 * kArmJoints], square[36], step[kArmJoints], solved[6];
    for (int row = 0; row < 6; ++row) {
      for (int i = 0; i < kArmJoints; ++i)
        columns[row * kArmJoints + i] = jacobian_[row * nv + arm.dof[i]];
    }
    mju_mulMatMatT(square, columns, columns, 6, kArmJoints, 6);
    for (int i = 0; i < 6; ++i) square[7 * i] += kDamping * kDamping;
    mju_cholFactor(square, 6, 0);
    mju_cholSolve(solved, square, error, 6);
    mju_mulMatTVec(step, columns, solved, 6, kArmJoints);
    for (int i = 0; i < kArmJoints; ++i) {
      const mjtNum moved = angles[i] + std::clamp(step[i], -kLargestTurn, kLargestTurn);
      angles[i] = std::clamp(moved, arm.low[i], arm.high[i]);
    }
  }
}

std::array<JointAngles, 2> Kinematics::Uplift(const std::array<Arm, 2>& arms,
                                              const std::array<JointAngles, 2>& angles) {
  for (int side = 0; side < 2; ++side) Place(arms[side], angles[side]);
  mj_kinematics(model_, data_.get());
  mj_comPos(model_, data_.get());
  mj_rne(model_, data_.get(), 0, force_.data());
  std::array<JointAngles, 2> commands = angles;
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < kArmJoints; ++i)
      commands[side][i] += force_[arms[side].dof[i]] / arms[side].stiffness[i];
  }
  return commands;
}

}  // namespace mjp::app
