#ifndef TASKS_ALOHA_INSERTION_INSERTION_PLAN_H_
#define TASKS_ALOHA_INSERTION_INSERTION_PLAN_H_

#include <cstdint>
#include <vector>

#include "tasks/aloha/arms/plan_follower.h"
#include "tasks/aloha/insertion/insertion_scene.h"

// How the peg gets from the table into the socket. What is to be done is read from the situation
// alone, so a plan can be made anywhere.

namespace mjp::app {

// What may differ between good episodes. The first values are the middle of each range.
struct InsertionStyle {
  double pitch = 67;                    // of the hands at their parts, degrees downwards
  double height = 0.075;                // from which they go down, metres
  double meet[3] = {0, 0.5, 0.2};       // the middle between the parts that face each other, metres
  double gap = 0.04;                    // between them, metres
  std::array<double, 2> pace = {1, 1};  // durations: left, right
};

// The style that `seed` draws.
InsertionStyle DrawInsertionStyle(uint64_t seed);

enum class InsertionStage {
  kFetch,   // a hand has not its part: it fetches it
  kMeet,    // both have: the parts are held up in a line
  kInsert,  // the parts are in a line: the peg goes in
  kRest,    // it is in
  kLost,    // a part is out of its hand's reach
};

// The next stage and how to go through it.
struct InsertionPlan {
  InsertionStage stage = InsertionStage::kLost;
  std::array<Frame, 2> parts;                // where they were: socket, peg
  std::array<int, 2> closing = {};           // when each hand closes, control steps; 0: it does not
  std::array<std::vector<ArmPose>, 2> arms;  // left, right: one pose per control step, as many both
};

// The planner of Insertion, for a PlanFollower.
class InsertionPlanner {
 public:
  using Situation = InsertionSituation;
  using Style = InsertionStyle;
  using Plan = InsertionPlan;

  // `model` must outlive this. Throws Error where it has not ALOHA's arms, socket and peg.
  explicit InsertionPlanner(const mjModel* model);

  const std::array<Arm, 2>& arms() const { return scene_.arms; }
  Kinematics& kinematics() { return kinematics_; }

  Situation Read(const mjData* data) const { return ReadInsertion(scene_, model_, data); }
  // The next stage from `now`.
  Plan Make(const Situation& now, const Style& style);
  Doubt Judge(const Plan& plan, size_t step, const Situation& now);
  // A peg that is in is left as it is held.
  bool GoesOn(const Plan&, const Situation& now) const { return !now.inserted; }

 private:
  Track Begin(const Situation& now, const Style& style, int side, bool closed);
  bool Has(const Situation& now, int side);
  Frame HeldIn(const Situation& now, int side);
  bool PlanFetch(const Situation& now, const Style& style, Plan& plan);
  void ShowUp(const Situation& now, const Style& style, int side, Track& track);
  void PlanMeet(const Situation& now, const Style& style, Plan& plan);
  void PlanInsert(const Situation& now, const Style& style, Plan& plan);

  const mjModel* model_;
  InsertionScene scene_;
  Kinematics kinematics_;
};

using InsertionExpert = PlanFollower<InsertionPlanner>;

}  // namespace mjp::app

#endif  // TASKS_ALOHA_INSERTION_INSERTION_PLAN_H_
