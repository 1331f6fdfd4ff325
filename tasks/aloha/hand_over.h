#ifndef TASKS_ALOHA_HAND_OVER_H_
#define TASKS_ALOHA_HAND_OVER_H_

#include <cstdint>
#include <vector>

#include "tasks/aloha/arms/grasp.h"
#include "tasks/aloha/arms/plan_follower.h"
#include "tasks/aloha/situation.h"

// How the cube gets from the table into the right hand and from there into the left one. What is to
// be done is read from the situation alone, so a plan can be made anywhere: at a start, after a
// miss, from a state that a learner got into.

namespace mjp::app {

// What may differ between good episodes. The first values are the middle of each range.
struct Style {
  double pitch = 67;                     // of the right hand at the cube, degrees downwards
  double height = 0.075;                 // from which it goes down, metres
  double meet[3] = {0, 0.5, 0.26};       // where the hands meet, metres
  double distance = 0.115;               // at which the left hand waits, metres
  double yaw = 0;                        // of the left hand off its arm's bearing, degrees
  double right_away[2] = {0.105, 0.05};  // x, z: where the right hand goes at the end, metres
  double left_away[3] = {-0.11, 0, 0};   // where the left hand goes, from where they met, metres
  std::array<double, 2> pace = {1, 1};   // durations: left, right
};

// The style that `seed` draws.
Style DrawStyle(uint64_t seed);

enum class Stage {
  kPick,     // nobody holds the cube: a hand fetches it
  kGive,     // the right hand has it: the hands meet, the left one closes
  kRelease,  // both have it: the right hand opens and leaves
  kRest,     // the left hand has it
  kLost,     // no hand reaches it
};

// The next stage and how to go through it.
struct Plan {
  Stage stage = Stage::kLost;
  Frame cube;                                // where the cube was
  int closing = 0;                           // control step at which the hand that picks closes
  std::array<std::vector<ArmPose>, 2> arms;  // left, right: one pose per control step, as many both
};

// The planner of TransferCube, for a PlanFollower.
class HandOver {
 public:
  using Situation = app::Situation;
  using Style = app::Style;
  using Plan = app::Plan;

  // `model` must outlive this. Throws Error where it has not ALOHA's arms and cube.
  explicit HandOver(const mjModel* model);

  const std::array<Arm, 2>& arms() const { return scene_.arms; }
  Kinematics& kinematics() { return kinematics_; }

  Situation Read(const mjData* data) const { return ReadSituation(scene_, model_, data); }
  // The next stage from `now`.
  Plan Make(const Situation& now, const Style& style);
  Doubt Judge(const Plan& plan, size_t step, const Situation& now) const;
  bool GoesOn(const Plan& plan, const Situation&) const { return plan.stage != Stage::kRest; }

 private:
  bool HeldByFaces(const Situation& now);
  bool FindCubeGrasp(const Situation& now, const Style& style, Side hand, Grasp& grasp);
  Frame WaitingFrame(const Style& style) const;
  JointAngles WaitingAngles(const Style& style);
  bool PlanPick(const Situation& now, const Style& style, Side hand, Plan& plan);
  void PlanGive(const Situation& now, const Style& style, Plan& plan);
  void PlanRelease(const Situation& now, const Style& style, Plan& plan);
  void PlanRest(const Situation& now, const Style& style, Plan& plan);

  const mjModel* model_;
  CubeScene scene_;
  Kinematics kinematics_;
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_HAND_OVER_H_
