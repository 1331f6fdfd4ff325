#ifndef TASKS_PUSHT_PLANNER_QUASI_STATIC_H_
#define TASKS_PUSHT_PLANNER_QUASI_STATIC_H_

#include "kernels/cpu/isa.h"
#include "tasks/pusht/physics/state.h"

// A fast model of Push-T for planning: the agent follows its target as the benchmark's does, the
// block has no memory of its velocity and moves only while it is pushed. Kinematic circle against
// two frictionless boxes, walls as half-planes, Gauss-Seidel on the contacts. Many candidate
// futures are simulated side by side in SIMD lanes; every instruction set gives the same bits.

namespace mjp::app {

// A state with the agent's velocity, which the state itself does not carry.
struct MovingState {
  State pose;
  double agent_vx = 0, agent_vy = 0;  // pixels per second
};

// The agent's velocity at `now`, one control step after `before`, in which its target was
// (target_x, target_y): in closed form, since the agent is a linear system that nothing disturbs.
MovingState WithVelocity(const State& before, const State& now, double target_x, double target_y);

// Which engine's contact rule is followed. MuJoCo resolves a contact with the agent's velocity
// after its update and corrects any penetration; Chipmunk with the velocity before it, and leaves
// a slop of 0.1 pixels. Both are memoryless in (pose, agent velocity).
enum class ContactRule { kMujoco, kChipmunk };

inline constexpr int kLanes = 16;

// `kLanes` independent worlds, structure of arrays: pixels, pixels per second.
struct alignas(64) LaneWorlds {
  float agent_x[kLanes], agent_y[kLanes], agent_vx[kLanes], agent_vy[kLanes];
  float center_x[kLanes], center_y[kLanes];  // the block's centre of gravity
  float cosine[kLanes], sine[kLanes];        // of the block's angle
};

// One target per lane, held for a control step.
struct alignas(64) LaneTargets {
  float x[kLanes], y[kLanes];
};

// A plan is a path of targets through knots, kKnotSpacing control steps apart.
inline constexpr int kKnots = 12, kKnotSpacing = 4, kHorizon = kKnots * kKnotSpacing;

// Paths of `kLanes` candidates, pixels. All begin at (start_x, start_y).
struct alignas(64) LanePaths {
  float x[kKnots][kLanes], y[kKnots][kLanes];
  float start_x, start_y;
};

// What a plan costs: only differences count, so the unit is free.
struct PlanCost {
  // of a state; the last one counts kHorizon times
  float distance = 1;  // per pixel of D, the mean distance of the block's corners to the goal's
  float root_distance = 6;  // per sqrt(D)
  float reach = 0.05f;      // per pixel of the agent's distance to the block beyond reach_radius
  float reach_radius = 60;
  float wall = 5;  // per pixel that a corner is deeper in a wall than wall_depth
  float wall_depth = 2;
  // of the path, per control step; speeds in pixels per control step
  float speed = 0.01f;
  float excess = 5;  // per unit of speed above speed_limit
  float speed_limit = 24;
  float turn = 0.2f;  // per unit of change of velocity, once per knot
};

// Puts every lane into `state`.
void FillLanes(const MovingState& state, LaneWorlds* worlds);

// The pose in one lane; the angle is in (-pi, pi].
MovingState ReadLane(const LaneWorlds& worlds, int lane);

// What is compiled once per instruction set.
struct LaneKernels {
  // One control step: ten substeps towards the lane's target.
  void (*step)(LaneWorlds* worlds, const LaneTargets& targets, ContactRule rule);
  // cost[lane] = cost of following the lane's path from its world in `start`.
  void (*evaluate)(const LaneWorlds& start, const LanePaths& paths, const PlanCost& terms,
                   float* cost);
};

// The kernels for `isa`, which the processor must have.
const LaneKernels& LaneKernelsFor(mjp::Isa isa);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PLANNER_QUASI_STATIC_H_
