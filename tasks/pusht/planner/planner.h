#ifndef TASKS_PUSHT_PLANNER_PLANNER_H_
#define TASKS_PUSHT_PLANNER_PLANNER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tasks/pusht/planner/quasi_static.h"

// A sampling planner for Push-T: many candidate paths of the agent, structured (walk round the
// block, approach, push) or mutations of good ones, are followed in the quasi-static model; the
// cheapest wins. Nothing is averaged, so a plan never lies between two ways round the block.

namespace mjp::app {

struct Point {
  float x = 0, y = 0;  // pixels
};

// A path of targets: linear from `start` through the knots, kKnotSpacing control steps apart.
struct Plan {
  Point start;
  std::array<Point, kKnots> knots;
  float cost = 0;

  // The target of control step `step` >= 0 from the plan's state on; the last knot afterwards.
  Point Target(int step) const;
};

// The plan that remains of `plan` after `steps` control steps.
Plan Advance(const Plan& plan, int steps);

// The plan that follows `targets` (one per control step, at least one) and then stays.
Plan FollowTargets(std::span<const Point> targets);

// The state after `targets`, one per control step, in the planner's model.
MovingState Follow(const MovingState& state, std::span<const Point> targets);

struct PlannerOptions {
  int samples = 256;  // a multiple of kLanes
  int rounds = 4;
  PlanCost cost;
};

// Names the randomness of a plan: the same key gives the same plan.
struct PlanKey {
  uint64_t seed = 0;      // of the episode
  uint64_t decision = 0;  // index of the plan within the episode
};

// Makes plans one after the other; owns its scratch memory, so each thread has its own.
class Planner {
 public:
  // Throws Error if an option is out of range.
  explicit Planner(const PlannerOptions& options);

  // The best plan found from `state`. The path starts where the agent would coast to, so that a
  // plan is a function of the state. `warm` (may be null): a plan for this same state to improve.
  Plan Solve(const MovingState& state, const Plan* warm, const PlanKey& key);

 private:
  void Propose(const MovingState& state, const Plan* warm, const PlanKey& key, int round);
  void Evaluate(const MovingState& state);
  void KeepElites(int round);

  PlannerOptions options_;
  const LaneKernels* kernels_;
  std::vector<Plan> proposals_;
  std::vector<Plan> elites_;  // cheapest first
  std::vector<int> order_;    // scratch of KeepElites
};

// One plan to be made by MakePlans.
struct PlanRequest {
  MovingState state;
  bool has_warm = false;
  Plan warm;
  PlanKey key;
};

// Solves all requests on `threads` threads; the result does not depend on their number.
std::vector<Plan> MakePlans(std::span<const PlanRequest> requests, const PlannerOptions& options,
                            int threads);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_PLANNER_H_
