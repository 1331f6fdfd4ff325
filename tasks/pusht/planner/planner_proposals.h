#ifndef TASKS_PUSHT_PLANNER_PLANNER_PROPOSALS_H_
#define TASKS_PUSHT_PLANNER_PLANNER_PROPOSALS_H_

#include "tasks/physics/random_stream.h"
#include "tasks/pusht/planner/planner.h"

namespace mjp::app {

// A path that walks round the block on a safe circle (or goes straight), approaches a random point
// of its outline and pushes along a tilted normal. Speeds stay within `speed_limit` pixels per
// control step. `start` is the path's first point.
Plan ProposePush(const State& state, const Point& start, float speed_limit, RandomStream* random);

// `plan` with normal noise of deviation `sigma` pixels on the knots from `first_knot` on.
Plan Mutate(const Plan& plan, float sigma, int first_knot, RandomStream* random);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_PLANNER_PROPOSALS_H_
