#ifndef TASKS_PUSHT_PHYSICS_STATE_H_
#define TASKS_PUSHT_PHYSICS_STATE_H_

namespace mjp::app {

// State of Push-T in world pixels: 512 x 512, y down, angle in radians, clockwise on the screen.
struct State {
  double agent_x = 0, agent_y = 0;
  double block_x = 0, block_y = 0;  // origin of the block: middle of the bar's outer edge
  double block_angle = 0;           // not wrapped
};

// Geometry and protocol of the benchmark (docs/ARCHITECTURE.md names the source).
inline constexpr double kWorldSize = 512;        // pixels
inline constexpr double kAgentRadius = 15;       // pixels
inline constexpr double kCenterOfGravityY = 45;  // of the block, in its own frame, pixels
inline constexpr double kGoalX = 256, kGoalY = 256, kGoalAngle = 0.78539816339744830962;
inline constexpr double kSuccessCoverage = 0.95;  // success: coverage > this, strictly
inline constexpr int kControlSteps = 300;         // steps of an episode
inline constexpr int kSubsteps = 10;              // physics steps per control step
inline constexpr double kTimestep = 0.01;         // seconds per physics step

}  // namespace mjp::app

#endif  // TASKS_PUSHT_PHYSICS_STATE_H_
