#ifndef TASKS_ALOHA_ARMS_KINEMATICS_H_
#define TASKS_ALOHA_ARMS_KINEMATICS_H_

#include <mujoco/mujoco.h>

#include <array>

#include "tasks/aloha/arms/arm.h"
#include "tasks/physics/frame.h"
#include "tasks/physics/model.h"

namespace mjp::app {

// Where the tools of the arms are, and the joint angles that bring them somewhere. Not
// thread-safe: it computes in data of its own.
class Kinematics {
 public:
  // `model` must outlive this.
  explicit Kinematics(const mjModel* model);

  // The pose of the tool in the world.
  Frame ToolPose(const Arm& arm, const JointAngles& angles);

  // Brings the tool to `target` from `angles` by damped least squares, within the joints' ranges.
  // Returns whether the tool is then there, to 1 mm and 10 mrad; `angles` is the nearest found.
  bool Solve(const Arm& arm, const Frame& target, int iterations, JointAngles& angles);

  // What to command so that the arms stand at `angles` (left, right) against gravity: the servos
  // are springs.
  std::array<JointAngles, 2> Uplift(const std::array<Arm, 2>& arms,
                                    const std::array<JointAngles, 2>& angles);

 private:
  void Place(const Arm& arm, const JointAngles& angles);

  const mjModel* model_;
  DataPtr data_;
  std::vector<mjtNum> jacobian_;  // (6, nv): position, rotation
  std::vector<mjtNum> force_;     // (nv)
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_KINEMATICS_H_
