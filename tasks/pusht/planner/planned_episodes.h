#ifndef TASKS_PUSHT_PLANNER_PLANNED_EPISODES_H_
#define TASKS_PUSHT_PLANNER_PLANNED_EPISODES_H_

#include <atomic>
#include <cstdint>

#include "tasks/pusht/options.h"
#include "tasks/pusht/planner/planner.h"
#include "tasks/results/report.h"

namespace mjp::app {

struct PlannedEpisodesOptions {
  int episodes = 100;
  uint32_t seed = 100000;  // episode i starts from seed + i, as an evaluation's does
  int action_steps = 8;    // control steps of a plan that are executed
  PushtOptions pusht;
  PlannerOptions planner;
  int threads = 0;  // 0: one per core
};

// Plays episodes with the planner in the policy's place: it knows the state exactly and plans from
// the rest of its plan before. What it reaches under pushes is what they leave to be reached.
// Returns how they went, whatever the threads; of fewer episodes if `stop` became true. Throws
// Error for options that cannot be met.
Figures PlayPlanned(const PlannedEpisodesOptions& options, const std::atomic<bool>& stop);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_PLANNED_EPISODES_H_
