#ifndef TASKS_ALOHA_SITUATION_H_
#define TASKS_ALOHA_SITUATION_H_

#include <mujoco/mujoco.h>

#include <array>

#include "tasks/aloha/arms/hold.h"
#include "tasks/physics/frame.h"

namespace mjp::app {

// What of a model is ALOHA's two arms and the cube.
struct CubeScene {
  std::array<Arm, 2> arms;  // left, right
  int cube;                 // geom
  int table;                // geom
};

// Throws Error naming what the model lacks.
CubeScene FindCubeScene(const mjModel* model);

// What a plan is made from; the hold is that of the cube.
struct Situation : Hold {
  Frame cube;                   // in the world
  std::array<ArmPose, 2> arms;  // as they are
};

// Reads it; positions and contacts of `data` must be up to date (mj_step1).
Situation ReadSituation(const CubeScene& scene, const mjModel* model, const mjData* data);

// How a hand from above is to be turned about the vertical so that it takes the cube by two upright
// faces.
struct Grip {
  double yaw;  // degrees: within 45 either way where the cube lies flat, else within 90
  bool flat;   // the cube lies on a face: a quarter turn more would do, too
};
// A cube may rest on an edge here: its joint has friction.
Grip GripOf(const Frame& cube);

}  // namespace mjp::app

#endif  // TASKS_ALOHA_SITUATION_H_
