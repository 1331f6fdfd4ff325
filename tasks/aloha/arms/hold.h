#ifndef TASKS_ALOHA_ARMS_HOLD_H_
#define TASKS_ALOHA_ARMS_HOLD_H_

#include <mujoco/mujoco.h>

#include <array>

#include "tasks/aloha/arms/arm.h"
#include "tasks/aloha/arms/track.h"

namespace mjp::app {

// Who has a thing.
struct Hold {
  std::array<bool, 2> touches;  // whether a finger of the hand touches it: left, right
  std::array<bool, 2> holds;    // whether both do
  bool on_table;                // whether it touches the table
};

// Reads it for the thing that is `body`; `table` is a geom. Contacts of `data` must be up to date
// (mj_step1).
Hold ReadHold(const std::array<Arm, 2>& arms, int table, int body, const mjModel* model,
              const mjData* data);

// Where the arms are, left and right, and how far their hands are open.
std::array<ArmPose, 2> PosesOf(const std::array<Arm, 2>& arms, const mjData* data);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_ARMS_HOLD_H_
