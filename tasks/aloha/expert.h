#ifndef TASKS_ALOHA_EXPERT_H_
#define TASKS_ALOHA_EXPERT_H_

#include "tasks/aloha/arms/plan_follower.h"
#include "tasks/aloha/hand_over.h"
#include "tasks/aloha/transfer_cube.h"

namespace mjp::app {

// Plays TransferCube.
using TransferExpert = PlanFollower<HandOver>;

}  // namespace mjp::app

#endif  // TASKS_ALOHA_EXPERT_H_
