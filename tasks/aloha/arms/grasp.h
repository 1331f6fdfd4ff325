#ifndef TASKS_ALOHA_ARMS_GRASP_H_
#define TASKS_ALOHA_ARMS_GRASP_H_

#include <array>
#include <vector>

#include "tasks/aloha/arms/kinematics.h"
#include "tasks/aloha/arms/track.h"

// What plans of both tasks are made of: poses of a hand, a way down to a thing on the table, the
// ways to turn what is held.

namespace mjp::app {

inline constexpr JointAngles kHome = {0, -0.96, 1.16, 0, -0.3, 0};
inline constexpr int kSolverIterations = 200;  // of the inverse kinematics for a long way's end
inline constexpr int kSettle = 4;              // control steps before a hand closes

using Turn = std::array<mjtNum, 4>;  // a quaternion

// The turn by `degrees` about an axis.
void AxisQuat(mjtNum* quat, double x, double y, double z, double degrees);
// A hand that points down by `pitch` degrees, turned about the vertical by `yaw` degrees.
void Downwards(mjtNum* quat, double yaw, double pitch);
// `frame` moved along its own x axis, metres.
Frame Ahead(const Frame& frame, double distance);
Frame At(double x, double y, double z);

// Angles from which the inverse kinematics is to start: elbow up, the hand towards `target`, so
// that every plan takes the same branch of the solution.
JointAngles Guess(const Arm& arm, const Frame& target);

// How a hand may come down on a thing.
struct Approach {
  double place[3];           // of the thing, metres
  std::vector<double> yaws;  // of the hand, the best first, degrees
  double pitch;              // downwards, degrees; where it cannot be, others near it are tried
  double depth;              // of the tool behind the place, metres
  double height;             // from which it comes down, metres
};
struct Grasp {
  Frame tool;         // at the thing
  JointAngles above;  // from which it comes down
};
// The first grasp that the arm reaches. Returns whether there is one.
bool FindGrasp(Kinematics& kinematics, const Arm& arm, const Approach& approach, Grasp& grasp);

// The ways to turn a hand that holds a thing as `held` so that the thing's axes are along the
// world's: 24, the nearest to `usual` (a quaternion of the hand) first.
std::vector<Turn> WaysToTurn(const Frame& held, const mjtNum* usual);

// A hand that holds a thing goes on being closed, however far the thing keeps it open.
inline ArmPose Closed(const ArmPose& pose) { return {pose.angles, 0}; }
// A hand that keeps a thing from falling opens at once.
inline ArmPose Opened(const ArmPose& pose, bool touches) {
  return {pose.angles, touches ? 1 : pose.opening};
}

// A tool near the table goes up before it goes anywhere, its hand opening.
void RaiseWhereLow(Track& track);
void MakeEqualLong(Track& a, Track& b);

// The action that brings the arms (left, right) to `poses`, against gravity.
AlohaNumbers ActionFor(Kinematics& kinematics, const std::array<Arm, 2>& arms,
                       const std::array<ArmPose, 2>& poses);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_GRASP_H_
