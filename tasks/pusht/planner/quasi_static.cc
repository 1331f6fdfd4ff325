#include "tasks/pusht/planner/quasi_static.h"

#include <cmath>

namespace mjp::app {

namespace lanes_baseline {
extern const LaneKernels kKernels;
}
#ifdef __x86_64__
namespace lanes_avx2 {
extern const LaneKernels kKernels;
}
namespace lanes_avx512 {
extern const LaneKernels kKernels;
}
#endif

namespace {

constexpr double kStiffness = 100, kDamping = 20;  // the agent's PD gains

// One control step of the agent towards a target at 0.
void FollowTarget(double* position, double* velocity) {
  for (int i = 0; i < kSubsteps; ++i) {
    *velocity += kTimestep * (-kStiffness * *position - kDamping * *velocity);
    *position += kTimestep * *velocity;
  }
}

// The velocity after a control step that led from `before` to `now`, both relative to the target.
// The step is linear: now = a * before + b * velocity before.
double VelocityAfter(double before, double now) {
  double a = 1, unused = 0;
  FollowTarget(&a, &unused);
  double b = 0, velocity = 1;
  FollowTarget(&b, &velocity);
  double position = before;
  velocity = (now - a * before) / b;
  FollowTarget(&position, &velocity);
  return velocity;
}

}  // namespace

MovingState WithVelocity(const State& before, const State& now, double target_x, double target_y) {
  return {now, VelocityAfter(before.agent_x - target_x, now.agent_x - target_x),
          VelocityAfter(before.agent_y - target_y, now.agent_y - target_y)};
}

void FillLanes(const MovingState& state, LaneWorlds* worlds) {
  const double c = std::cos(state.pose.block_angle), s = std::sin(state.pose.block_angle);
  for (int i = 0; i < kLanes; ++i) {
    worlds->agent_x[i] = static_cast<float>(state.pose.agent_x);
    worlds->agent_y[i] = static_cast<float>(state.pose.agent_y);
    worlds->agent_vx[i] = static_cast<float>(state.agent_vx);
    worlds->agent_vy[i] = static_cast<float>(state.agent_vy);
    worlds->center_x[i] = static_cast<float>(state.pose.block_x - kCenterOfGravityY * s);
    worlds->center_y[i] = static_cast<float>(state.pose.block_y + kCenterOfGravityY * c);
    worlds->cosine[i] = static_cast<float>(c);
    worlds->sine[i] = static_cast<float>(s);
  }
}

MovingState ReadLane(const LaneWorlds& worlds, int lane) {
  const double c = worlds.cosine[lane], s = worlds.sine[lane];
  MovingState state;
  state.pose.agent_x = worlds.agent_x[lane];
  state.pose.agent_y = worlds.agent_y[lane];
  state.pose.block_x = worlds.center_x[lane] + kCenterOfGravityY * s;
  state.pose.block_y = worlds.center_y[lane] - kCenterOfGravityY * c;
  state.pose.block_angle = std::atan2(s, c);
  state.agent_vx = worlds.agent_vx[lane];
  state.agent_vy = worlds.agent_vy[lane];
  return state;
}

const LaneKernels& LaneKernelsFor(mjp::Isa isa) {
#ifdef __x86_64__
  if (isa == mjp::Isa::kAvx512) return lanes_avx512::kKernels;
  if (isa == mjp::Isa::kAvx2) return lanes_avx2::kKernels;
#else
  static_cast<void>(isa);  // there is one
#endif
  return lanes_baseline::kKernels;
}

}  // namespace mjp::app
