#ifndef TASKS_PUSHT_PLANNER_DEMONSTRATION_STREAM_H_
#define TASKS_PUSHT_PLANNER_DEMONSTRATION_STREAM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/planner/planner.h"

namespace mjp::app {

// Targets of a demonstration: those of one fresh plan, from the row's own state on.
inline constexpr int kDemonstratedTargets = 15;

// One row of demonstrations, all float32, as it lies in the files. State: agent x, y, block x, y
// (pixels), block angle (radians, not wrapped). One control step lies between the two states.
struct DemonstrationRow {
  float previous[5];         // state one control step before (at a start: the state itself)
  float state[5];            // state the plan is made from
  float previous_target[2];  // target held between the two (at a start: the agent's position)
  float targets[kDemonstratedTargets][2];
};
inline constexpr int kDemonstrationColumns = sizeof(DemonstrationRow) / sizeof(float);
static_assert(kDemonstrationColumns == 42);

// Which states the demonstrations visit.
struct StreamOptions {
  int rows = 1024;
  uint64_t seed = 1000000;       // with the stream's index it names all randomness
  double near_goal_share = 0.2;  // of the starts: the goal +- 15 pixels, +- 0.25 radians
  double anywhere_share = 0.1;   // of the starts: block anywhere between the walls
  double disturbed_share = 0.5;  // of the episodes
  double jolt_share = 0.2;       // of a disturbed episode's plans: a random target goes before
  double offset_share = 0.3;     // of a disturbed episode's plans: constant offset while executed
  double push_share = 0.2;       // of a disturbed episode's plans: the block is pushed before
  double goal_coverage = 0.98;   // ends an episode
  int min_execute = 2, max_execute = 7;  // control steps between plans
  PlannerOptions planner;
};

// How the episodes that a stream finished went.
struct StreamStatistics {
  int64_t rows = 0, episodes = 0, solved = 0;  // solved: coverage > 0.95 within 300 control steps
  int64_t steps = 0;                           // control steps until solved, summed
};

struct Stream {
  std::vector<DemonstrationRow> rows;
  StreamStatistics statistics;
};

// The row that teaches at `state` the targets `ahead`, and then `plan`: `target` was held in the
// control step from `previous` on.
DemonstrationRow MakeRow(const State& previous, const State& state, const Point& target,
                         const Plan& plan, std::span<const Point> ahead = {});

// Makes the stream `index`: episodes one after the other, executed in MuJoCo, until it has
// options.rows rows. The same (options, index) gives the same bits. `data` is overwritten.
Stream MakeStream(const StreamOptions& options, int64_t index, const Scene& scene, mjData* data);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_DEMONSTRATION_STREAM_H_
