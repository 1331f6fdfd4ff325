#include "tasks/pusht/physics/reset.h"

#include <cmath>
#include <numbers>

#include "tasks/physics/random_state.h"

namespace mjp::app {

State BenchmarkDraw(uint32_t seed) {
  RandomState random(seed);
  State draw;
  draw.agent_x = static_cast<double>(random.RandInt(50, 450));
  draw.agent_y = static_cast<double>(random.RandInt(50, 450));
  draw.block_x = static_cast<double>(random.RandInt(100, 400));
  draw.block_y = static_cast<double>(random.RandInt(100, 400));
  draw.block_angle = random.Randn() * 2 * std::numbers::pi - std::numbers::pi;
  return draw;
}

State ApplyLegacyRule(const State& draw) {
  State start = draw;
  start.block_x += kCenterOfGravityY * std::sin(draw.block_angle);
  start.block_y += kCenterOfGravityY * (1 - std::cos(draw.block_angle));
  return start;
}

}  // namespace mjp::app
