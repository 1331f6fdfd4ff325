#ifndef TASKS_ALOHA_ARMS_PLAN_FOLLOWER_H_
#define TASKS_ALOHA_ARMS_PLAN_FOLLOWER_H_

#include <mujoco/mujoco.h>

#include <algorithm>

#include "tasks/aloha/arms/grasp.h"

namespace mjp::app {

// What a planner thinks of its plan.
enum class Doubt {
  kNone,
  kSlipping,  // another plan where this lasts
  kWrong,     // another plan at once
};

// Plays a task: follows a plan for the stage at hand, watches whether it comes true, and makes
// another where it does not. Not thread-safe. A Planner has the types Situation, Style and Plan (of
// it `stage` and `arms`, a pose per control step for left and right), and the functions
//   Planner(model), arms(), kinematics(),
//   Situation Read(data), Plan Make(situation, style): functions of their arguments alone,
//   Doubt Judge(plan, step, situation): of a plan that has been followed for `step` control steps,
//   bool GoesOn(plan, situation): whether there is something to do after the plan.
template <class Planner>
class PlanFollower {
 public:
  using Plan = typename Planner::Plan;
  using Style = typename Planner::Style;

  // `model` must outlive this. Throws Error naming what it lacks.
  explicit PlanFollower(const mjModel* model) : planner_(model) {}

  // Begins an episode, or goes on from where another hand has left one.
  void Begin(const Style& style) {
    style_ = style;
    plan_ = Plan();
    step_ = 0;
    slipping_ = 0;
  }

  // The action for the control step that starts from `data`, whose positions and contacts must be
  // up to date (mj_step1).
  AlohaNumbers Act(const mjData* data) {
    const auto now = planner_.Read(data);
    const bool ended = step_ >= plan_.arms[kLeft].size() && planner_.GoesOn(plan_, now);
    if (Failed(now) || ended) {
      plan_ = planner_.Make(now, style_);
      step_ = 0;
      slipping_ = 0;
    }
    const size_t at = std::min(step_++, plan_.arms[kLeft].size() - 1);
    return ActionFor(planner_.kinematics(), planner_.arms(),
                     {plan_.arms[kLeft][at], plan_.arms[kRight][at]});
  }

  auto stage() const { return plan_.stage; }

 private:
  // Whether what the plan relies on is not so.
  bool Failed(const typename Planner::Situation& now) {
    constexpr int kPatience = 5;  // control steps
    const Doubt doubt = planner_.Judge(plan_, step_, now);
    slipping_ = doubt == Doubt::kSlipping ? slipping_ + 1 : 0;
    return doubt == Doubt::kWrong || slipping_ > kPatience;
  }

  Planner planner_;
  Style style_;
  Plan plan_;
  size_t step_ = 0;   // of the plan
  int slipping_ = 0;  // control steps for which the planner has thought so
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_PLAN_FOLLOWER_H_
