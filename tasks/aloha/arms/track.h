#ifndef TASKS_ALOHA_ARMS_TRACK_H_
#define TASKS_ALOHA_ARMS_TRACK_H_

#include <vector>

#include "tasks/aloha/arms/arm.h"
#include "tasks/aloha/arms/kinematics.h"

namespace mjp::app {

// Where an arm is to be at the end of a control step.
struct ArmPose {
  JointAngles angles;
  double opening;  // of the hand, 0 to 1
};

// The way of one arm, a pose per control step, put together of segments. Within a segment all
// move with minimum jerk, the hand's opening too; each starts and ends at rest.
class Track {
 public:
  // `arm` and `kinematics` must outlive this. `pace` scales the durations that are not given.
  Track(const Arm& arm, Kinematics& kinematics, const ArmPose& start, double pace);

  // Stays for `steps`.
  void Wait(int steps, double opening);
  // Stays until the track has `length` steps, or does nothing.
  void WaitUntil(int length);
  // The joints go straight to `angles`: for long ways.
  void Turn(const JointAngles& angles, double opening);
  // The tool goes straight to `target`: for short ways. Returns whether all of it can be reached;
  // what cannot is gone as near as can be.
  bool Line(const Frame& target, double opening);
  // The same by an offset in the world, metres.
  bool Shift(double x, double y, double z, double opening);

  int length() const { return static_cast<int>(poses_.size()); }
  const std::vector<ArmPose>& poses() const { return poses_; }
  const ArmPose& end() const { return poses_.empty() ? start_ : poses_.back(); }
  // The pose of the tool at the end.
  Frame tool() const { return kinematics_.ToolPose(arm_, end().angles); }

 private:
  int Duration(double steps) const;

  const Arm& arm_;
  Kinematics& kinematics_;
  ArmPose start_;
  double pace_;
  std::vector<ArmPose> poses_;
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_TRACK_H_
