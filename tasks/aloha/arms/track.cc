#include "tasks/aloha/arms/track.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {
namespace {

// Mean speeds, per control step: calm, as a person moves the arms.
constexpr double kTurnSpeed = 0.025;    // radians
constexpr double kLineSpeed = 0.003;    // metres
constexpr double kOpeningSpeed = 0.04;  // of the hand's opening
constexpr double kShortest = 12;        // control steps of a segment
constexpr int kIterations = 20;         // of the inverse kinematics at a step of a line

// The share of a segment that is done at share `s` of its time.
double MinimumJerk(double s) { return s * s * s * (10 + s * (-15 + 6 * s)); }

double Blend(double from, double to, double share) { return from + (to - from) * share; }

// `from` turned towards `to` by the share of the angle between.
void BlendQuat(mjtNum* result, const mjtNum* from, const mjtNum* to, double share) {
  mjtNum turn[3];
  mju_subQuat(turn, to, from);
  std::copy_n(from, 4, result);
  mju_quatIntegrate(result, turn, share);
}

}  // namespace

Track::Track(const Arm& arm, Kinematics& kinematics, const ArmPose& start, double pace)
    : arm_(arm), kinematics_(kinematics), start_(start), pace_(pace) {}

int Track::Duration(double steps) const {
  return static_cast<int>(std::lround(pace_ * std::max(steps, kShortest)));
}

void Track::Wait(int steps, double opening) {
  const ArmPose from = end();
  for (int k = 1; k <= steps; ++k) {
    poses_.push_back(
        {from.angles, Blend(from.opening, opening, MinimumJerk(static_cast<double>(k) / steps))});
  }
}

void Track::WaitUntil(int length) { Wait(length - this->length(), end().opening); }

void Track::Turn(const JointAngles& angles, double opening) {
  const ArmPose from = end();
  double most = std::abs(opening - from.opening) / kOpeningSpeed;
  for (int i = 0; i < kArmJoints; ++i)
    most = std::max(most, std::abs(angles[i] - from.angles[i]) / kTurnSpeed);
  const int steps = Duration(most);
  for (int k = 1; k <= steps; ++k) {
    const double share = MinimumJerk(static_cast<double>(k) / steps);
    ArmPose pose = {from.angles, Blend(from.opening, opening, share)};
    for (int i = 0; i < kArmJoints; ++i) pose.angles[i] = Blend(from.angles[i], angles[i], share);
    poses_.push_back(pose);
  }
}

bool Track::Line(const Frame& target, double opening) {
  const ArmPose from = end();
  const Frame start = tool();
  mjtNum turn[3];
  mju_subQuat(turn, target.quat, start.quat);
  const int steps = Duration(
      std::max({mju_dist3(target.pos, start.pos) / kLineSpeed, mju_norm3(turn) / kTurnSpeed,
                std::abs(opening - from.opening) / kOpeningSpeed}));
  JointAngles angles = from.angles;
  bool reached = true;
  for (int k = 1; k <= steps; ++k) {
    const double share = MinimumJerk(static_cast<double>(k) / steps);
    Frame pose;
    for (int i = 0; i < 3; ++i) pose.pos[i] = Blend(start.pos[i], target.pos[i], share);
    BlendQuat(pose.quat, start.quat, target.quat, share);
    reached &= kinematics_.Solve(arm_, pose, kIterations, angles);
    poses_.push_back({angles, Blend(from.opening, opening, share)});
  }
  return reached;
}

bool Track::Shift(double x, double y, double z, double opening) {
  Frame target = tool();
  target.pos[0] += x, target.pos[1] += y, target.pos[2] += z;
  return Line(target, opening);
}

}  // namespace mjp::app
