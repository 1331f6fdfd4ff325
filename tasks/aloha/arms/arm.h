#ifndef TASKS_ALOHA_ARMS_ARM_H_
#define TASKS_ALOHA_ARMS_ARM_H_

#include <mujoco/mujoco.h>

#include <array>
#include <string>

namespace mjp::app {

inline constexpr int kArmJoints = 6;
using JointAngles = std::array<mjtNum, kArmJoints>;  // waist first, wrist_rotate last; radians

// What the tasks take and what they show: the left arm's six joint angles and how far its hand is
// open, then the same of the right arm.
using AlohaNumbers = std::array<double, 14>;

enum Side { kLeft = 0, kRight = 1 };

// One arm of an ALOHA model: where its joints and its hand are in mjModel and mjData.
struct Arm {
  std::array<int, kArmJoints> qpos, dof;
  JointAngles low, high;  // ranges of the joints
  JointAngles stiffness;  // of their servos, Nm per radian
  mjtNum base[3];         // where the arm stands in the world
  int tool;               // the site between the finger tips: x ahead, y the way the hand opens
  int finger;             // address in qpos of the finger by which the hand's opening is told
  std::array<int, 2> finger_geoms;
  std::array<int, kArmJoints> servos;  // addresses in ctrl
  std::array<int, 2> finger_servos;    // of the two fingers, which move as mirror images
};

// The arm "left" or "right". Throws Error naming the joint, servo, site or geom that the model
// lacks.
Arm FindArm(const mjModel* model, const std::string& side);

// How far a hand is open, 0 to 1 as the task's state and action have it.
double OpeningOf(const Arm& arm, const mjtNum* qpos);
// Where the first finger of a hand is that is open so far, metres.
double FingerAt(double opening);

JointAngles AnglesOf(const Arm& arm, const mjtNum* qpos);

// The id of a named object. Throws Error naming it where the model has none.
int FindId(const mjModel* model, mjtObj type, const std::string& name);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_ARM_H_
