#ifndef TASKS_ALOHA_INSERTION_INSERTION_SCENE_H_
#define TASKS_ALOHA_INSERTION_INSERTION_SCENE_H_

#include <mujoco/mujoco.h>

#include <array>

#include "tasks/aloha/arms/hold.h"
#include "tasks/physics/frame.h"

namespace mjp::app {

// What of a model is ALOHA's two arms, the socket and the peg.
struct InsertionScene {
  std::array<Arm, 2> arms;    // left, right
  std::array<int, 2> bodies;  // the part of each hand: socket, peg
  int peg, pin, table;        // geoms
};

// Throws Error naming what the model lacks.
InsertionScene FindInsertionScene(const mjModel* model);

// What a plan is made from. Left and right are of the hand and of its part, the socket or the peg.
struct InsertionSituation {
  std::array<Frame, 2> parts;  // in the world; both are long along their x axis
  std::array<Hold, 2> hold;    // of each part, by either hand
  bool inserted;               // the peg touches the pin
  std::array<ArmPose, 2> arms;
};

// Reads it; positions and contacts of `data` must be up to date (mj_step1).
InsertionSituation ReadInsertion(const InsertionScene& scene, const mjModel* model,
                                 const mjData* data);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_INSERTION_INSERTION_SCENE_H_
