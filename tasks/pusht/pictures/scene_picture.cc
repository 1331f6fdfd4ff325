#include "tasks/pusht/pictures/scene_picture.h"

#include <algorithm>
#include <cmath>

namespace mjp::app {
namespace {

struct Vec {
  double x, y;
};

constexpr Color kPaper = {255, 255, 255}, kGoal = {144, 238, 144}, kWall = {211, 211, 211};
constexpr Color kAgent = {65, 105, 225}, kAgentInner = {78, 126, 255};
constexpr Color kBlock = {143, 163, 184}, kBlockEdge = {119, 136, 153};

// signed distances in world pixels, negative inside
double ToDisc(Vec p, double x, double y, double radius) {
  return std::hypot(p.x - x, p.y - y) - radius;
}

double ToBox(Vec p, Vec center, Vec half) {
  const double dx = std::abs(p.x - center.x) - half.x, dy = std::abs(p.y - center.y) - half.y;
  return std::hypot(std::max(dx, 0.0), std::max(dy, 0.0)) + std::min(std::max(dx, dy), 0.0);
}

// the block in its own frame: bar [-60, 60] x [0, 30], stem [-15, 15] x [30, 120]
double ToBlock(Vec p) { return std::min(ToBox(p, {0, 15}, {60, 15}), ToBox(p, {0, 75}, {15, 45})); }

Vec Local(Vec p, double x, double y, double angle) {
  const double c = std::cos(angle), s = std::sin(angle), dx = p.x - x, dy = p.y - y;
  return {c * dx + s * dy, -s * dx + c * dy};
}

struct Ink {
  double r = kPaper.r, g = kPaper.g, b = kPaper.b;
  // lays a colour over it where the distance is negative; `pixel` is the width of the soft edge
  void Add(Color color, double distance, double pixel) {
    const double share = std::clamp(0.5 - distance / pixel, 0.0, 1.0);
    r += share * (color.r - r), g += share * (color.g - g), b += share * (color.b - b);
  }
};

}  // namespace

void DrawScene(Picture& target, const State& state, int x, int y, int size) {
  const double pixel = kWorldSize / size;
  for (int row = 0; row < size; ++row) {
    for (int column = 0; column < size; ++column) {
      const Vec p = {(column + 0.5) * pixel, (row + 0.5) * pixel};
      Ink ink;
      ink.Add(kGoal, ToBlock(Local(p, kGoalX, kGoalY, kGoalAngle)), pixel);
      const double block = ToBlock(Local(p, state.block_x, state.block_y, state.block_angle));
      ink.Add(kBlock, block, pixel);
      ink.Add(kBlockEdge, std::abs(block) - 2, pixel);
      ink.Add(kAgent, ToDisc(p, state.agent_x, state.agent_y, kAgentRadius), pixel);
      ink.Add(kAgentInner, ToDisc(p, state.agent_x, state.agent_y, kAgentRadius - 4), pixel);
      ink.Add(kWall, std::abs(ToBox(p, {255.5, 255.5}, {250.5, 250.5})) - 2, pixel);
      uint8_t* out = &target.rgb[(static_cast<size_t>(y + row) * target.width + x + column) * 3];
      out[0] = static_cast<uint8_t>(std::lround(ink.r));
      out[1] = static_cast<uint8_t>(std::lround(ink.g));
      out[2] = static_cast<uint8_t>(std::lround(ink.b));
    }
  }
}

}  // namespace mjp::app
