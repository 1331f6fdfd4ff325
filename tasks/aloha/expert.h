#ifndef TASKS_ALOHA_EXPERT_H_
#define TASKS_ALOHA_EXPERT_H_

#include <mujoco/mujoco.h>

#include "tasks/aloha/hand_over.h"
#include "tasks/aloha/transfer_cube.h"

namespace mjp::app {

// Plays TransferCube: follows a plan for the stage at hand (hand_over.h), watches whether it comes
// true, and makes another where it does not. Not thread-safe.
class TransferExpert {
 public:
  // `model` must outlive this. Throws Error where it has not ALOHA's arms and cube.
  explicit TransferExpert(const mjModel* model);

  // Begins an episode, or goes on from where another hand has left one.
  void Begin(const Style& style);

  // The action for the control step that starts from `data`, whose positions, velocities and
  // contacts must be up to date (mj_step1).
  AlohaNumbers Act(const mjData* data);

  Stage stage() const { return plan_.stage; }

 private:
  bool Failed(const Situation& now);

  const mjModel* model_;
  HandOver hand_over_;
  Style style_;
  Plan plan_;
  size_t step_ = 0;  // of the plan
  int lost_ = 0;     // control steps for which the hand that should hold the cube has not
};

}  // namespace mjp::app

#endif  // TASKS_ALOHA_EXPERT_H_
