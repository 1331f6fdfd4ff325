#ifndef TASKS_PUSHT_PHYSICS_TABLE_H_
#define TASKS_PUSHT_PHYSICS_TABLE_H_

#include <mujoco/mujoco.h>

#include <string>

#include "tasks/physics/frame.h"

// What of a model is Push-T's table, agent, block and goal, wherever a model has them; the numbers
// are those of models/pusht.xml.

namespace mjp::app {

// The moving bodies of a model, by their joints.
struct TableBodies {
  int agent = 0, block = 0;
};

// Throws Error naming the joint that differs from the benchmark's: agent and block must slide and
// turn in one plane, about their own frames, from the same place.
TableBodies FindBodies(const mjModel* model);

// Where the frame of agent and block lies in the world while their joints are at zero.
Frame TableFrame(const mjModel* model, const TableBodies& bodies);

// Position (pixels) and angle of the goal on the table, in which kGoal... are the benchmark's.
struct GoalPose {
  double x, y, angle;
};

// The goal that `model` has. Throws Error where there is no body "goal" that lies in the table's
// plane, or where what is drawn of it, or the block that is to cover it, is not the benchmark's T.
GoalPose FindGoal(const mjModel* model);

// Throws Error, a sentence, unless the goal of `model` is the benchmark's: episodes are scored by
// that one.
void CheckBenchmarkGoal(const mjModel* model);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_TABLE_H_
