#include "tasks/aloha/arms/grasp.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace mjp::app {
namespace {

constexpr double kLow = 0.12, kFree = 0.16;  // heights of a tool, metres: in the way; out of it

// The 24 rotations by right angles.
std::vector<Turn> RightAngles() {
  std::vector<Turn> rotations;
  for (int axis = 0; axis < 6; ++axis) {
    mjtNum facing[4];  // turns x into one of the six directions
    if (axis < 4) AxisQuat(facing, 0, 0, 1, 90 * axis);
    if (axis >= 4) AxisQuat(facing, 0, 1, 0, axis == 4 ? 90 : -90);
    for (int roll = 0; roll < 4; ++roll) {
      mjtNum turn[4];
      AxisQuat(turn, 1, 0, 0, 90 * roll);
      mju_mulQuat(rotations.emplace_back().data(), facing, turn);
    }
  }
  return rotations;
}

}  // namespace

void AxisQuat(mjtNum* quat, double x, double y, double z, double degrees) {
  const mjtNum axis[3] = {x, y, z};
  mju_axisAngle2Quat(quat, axis, degrees * mjPI / 180);
}

void Downwards(mjtNum* quat, double yaw, double pitch) {
  mjtNum turn[4], tilt[4];
  AxisQuat(turn, 0, 0, 1, yaw);
  AxisQuat(tilt, 0, 1, 0, pitch);
  mju_mulQuat(quat, turn, tilt);
}

Frame Ahead(const Frame& frame, double distance) {
  Frame offset;
  offset.pos[0] = distance;
  return Compose(frame, offset);
}

Frame At(double x, double y, double z) {
  Frame frame;
  frame.pos[0] = x, frame.pos[1] = y, frame.pos[2] = z;
  return frame;
}

JointAngles Guess(const Arm& arm, const Frame& target) {
  const double x = std::abs(target.pos[0] - arm.base[0]);
  const double waist = (arm.base[0] < 0 ? 1 : -1) * std::atan2(target.pos[1] - arm.base[1], x);
  return {waist, -0.6, 1, 0, 0.8, 0};
}

bool FindGrasp(Kinematics& kinematics, const Arm& arm, const Approach& approach, Grasp& grasp) {
  for (const double yaw : approach.yaws) {
    for (const double steeper : {0, 2, 6, 10, 15, 20, -5}) {
      Frame tool = At(approach.place[0], approach.place[1], approach.place[2]);
      Downwards(tool.quat, yaw, approach.pitch + steeper);
      grasp.tool = Ahead(tool, approach.depth);
      Frame high = grasp.tool;
      high.pos[2] += approach.height;
      grasp.above = Guess(arm, high);
      if (!kinematics.Solve(arm, high, kSolverIterations, grasp.above)) continue;
      JointAngles down = grasp.above;
      if (kinematics.Solve(arm, grasp.tool, kSolverIterations, down)) return true;
    }
  }
  return false;
}

std::vector<Turn> WaysToTurn(const Frame& held, const mjtNum* usual) {
  static const std::vector<Turn> rotations = RightAngles();
  std::vector<Turn> ways;
  mjtNum back[4];
  mju_negQuat(back, held.quat);
  for (const Turn& upright : rotations) {
    mju_mulQuat(ways.emplace_back().data(), upright.data(), back);
  }
  std::ranges::sort(ways, std::greater(),
                    [usual](const Turn& way) { return std::abs(mju_dot(way.data(), usual, 4)); });
  return ways;
}

void RaiseWhereLow(Track& track) {
  const double height = track.tool().pos[2];
  if (height < kLow) track.Shift(0, 0, kFree - height, 1);
}

void MakeEqualLong(Track& a, Track& b) {
  a.WaitUntil(b.length());
  b.WaitUntil(a.length());
}

AlohaNumbers ActionFor(Kinematics& kinematics, const std::array<Arm, 2>& arms,
                       const std::array<ArmPose, 2>& poses) {
  const std::array<JointAngles, 2> angles =
      kinematics.Uplift(arms, {poses[kLeft].angles, poses[kRight].angles});
  AlohaNumbers action;
  for (const int side : {kLeft, kRight}) {
    std::ranges::copy(angles[side], action.begin() + 7 * side);
    action[7 * side + kArmJoints] = poses[side].opening;
  }
  return action;
}

}  // namespace mjp::app
