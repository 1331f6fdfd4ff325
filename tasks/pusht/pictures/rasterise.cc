#include "tasks/pusht/pictures/rasterise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "tasks/pusht/pictures/rasterise_geometry.h"

// The picture is drawn on a grid of taps, one byte each, and blended where something was drawn;
// the rest is a copy of the background. Only the bounding boxes of the block and of the agent are
// touched, and the grid is restored from the background afterwards.

namespace mjp {
namespace {

using namespace raster;

// Half-open range of taps.
struct TapBox {
  int x_begin, x_end, y_begin, y_end;
};

// Colours of four channels (the last unused) in 16 bits each.
using Lanes = uint64_t;
constexpr Lanes kRoundingLanes = 0x0002000200020002, kLaneBytes = 0x00ff00ff00ff00ff;

struct Tables {
  std::array<int, kTaps> coordinate;   // of each tap
  std::array<uint8_t, 513> first_tap;  // first tap at or after a coordinate
  uint8_t grid[kTaps][kTaps];          // the background's surfaces
  uint8_t rgb[kPictureBytes];          // the background's picture
  // share of one row of taps in a picture pixel: [x % 3][y % 3][lower row][left + 8 * right
  // surface]
  Lanes part[3][3][2][64];
};

template <int kChannel>
Lanes MakeLane(int left, int right, int second_weight, int row_weight) {
  const int along_x = BlendAlongX(Colour<kChannel>(left), Colour<kChannel>(right), second_weight);
  return static_cast<Lanes>(RowPart(along_x, row_weight)) << (16 * kChannel);
}

Lanes MakeLanes(int left, int right, int second_weight, int row_weight) {
  return MakeLane<0>(left, right, second_weight, row_weight) |
         MakeLane<1>(left, right, second_weight, row_weight) |
         MakeLane<2>(left, right, second_weight, row_weight);
}

void FillParts(Tables& tables) {
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 3; ++y) {
      for (int pair = 0; pair < 64; ++pair) {
        const int left = pair % 8, right = pair / 8, weight = SecondTapWeight(x);
        if (left >= kSurfaces || right >= kSurfaces) continue;
        tables.part[x][y][0][pair] = MakeLanes(left, right, weight, 2048 - SecondTapWeight(y));
        tables.part[x][y][1][pair] = MakeLanes(left, right, weight, SecondTapWeight(y));
      }
    }
  }
}

// Blends the picture pixels that own the taps of `box`.
void Blend(const Tables& tables, const uint8_t (*grid)[kTaps], const TapBox& box, uint8_t* rgb) {
  for (int y = box.y_begin / 2; y < (box.y_end + 1) / 2; ++y) {
    const uint8_t *upper = grid[2 * y], *lower = grid[2 * y + 1];
    uint8_t* out = rgb + (y * kPictureSize + box.x_begin / 2) * 3;
    for (int x = box.x_begin / 2, phase = x % 3; x < (box.x_end + 1) / 2; ++x, out += 3) {
      const Lanes(*part)[64] = tables.part[phase][y % 3];
      const Lanes sum = part[0][upper[2 * x] + 8 * upper[2 * x + 1]] +
                        part[1][lower[2 * x] + 8 * lower[2 * x + 1]] + kRoundingLanes;
      const Lanes bytes = (sum >> 2) & kLaneBytes;
      out[0] = static_cast<uint8_t>(bytes);
      out[1] = static_cast<uint8_t>(bytes >> 16);
      out[2] = static_cast<uint8_t>(bytes >> 32);
      phase = phase == 2 ? 0 : phase + 1;
    }
  }
}

// The taps inside a box of pixels, which may lie outside of the picture.
TapBox TapsOf(const Tables& tables, const Box& box) {
  const auto first = [&](int v) {
    return static_cast<int>(tables.first_tap[std::clamp(v, 0, 512)]);
  };
  return {first(box.x_lo), first(box.x_hi + 1), first(box.y_lo), first(box.y_hi + 1)};
}

void Fill(const Tables& tables, const Convex& shape, Surface surface, uint8_t (*grid)[kTaps]) {
  const TapBox box = TapsOf(tables, shape.box);
  const int width = box.x_end - box.x_begin;
  if (width <= 0) return;
  int along_x[4][kTaps];
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < width; ++i) {
      along_x[k][i] = shape.a[k] * tables.coordinate[box.x_begin + i] + shape.c[k];
    }
  }
  for (int row = box.y_begin; row < box.y_end; ++row) {
    const int y = tables.coordinate[row];
    const int along_y[4] = {shape.b[0] * y, shape.b[1] * y, shape.b[2] * y, shape.b[3] * y};
    uint8_t* out = grid[row] + box.x_begin;
    for (int i = 0; i < width; ++i) {
      const int sign = (along_x[0][i] + along_y[0]) | (along_x[1][i] + along_y[1]) |
                       (along_x[2][i] + along_y[2]) | (along_x[3][i] + along_y[3]);
      out[i] = sign >= 0 ? static_cast<uint8_t>(surface) : out[i];
    }
  }
}

// Calls draw(x, y, tap) for every tap of `box`.
template <typename Draw>
void ForEachTap(const Tables& tables, const TapBox& box, uint8_t (*grid)[kTaps], Draw draw) {
  for (int row = box.y_begin; row < box.y_end; ++row) {
    for (int column = box.x_begin; column < box.x_end; ++column) {
      draw(tables.coordinate[column], tables.coordinate[row], grid[row][column]);
    }
  }
}

void DrawWalls(const Tables& tables, const TapBox& box, uint8_t (*grid)[kTaps]) {
  constexpr int kInsideBegin = 4, kInsideEnd = kTaps - 4;  // no tap between touches a wall
  if (box.x_begin >= kInsideBegin && box.x_end <= kInsideEnd && box.y_begin >= kInsideBegin &&
      box.y_end <= kInsideEnd) {
    return;
  }
  ForEachTap(tables, box, grid, [](int x, int y, uint8_t& tap) {
    if (OnWall(x, y)) tap = kWall;
  });
}

Rectangle MakeRectangle(int part, double x, double y, double angle) {
  Rectangle r;
  for (int k = 0; k < 4; ++k) r.corner[k] = RoundedCorner(part, k, x, y, angle);
  for (int k = 0; k < 4; ++k) FinishEdge(k, &r);
  FinishBoxes(&r);
  return r;
}

void DrawRectangle(const Tables& tables, const Rectangle& r, uint8_t (*grid)[kTaps]) {
  Fill(tables, r.fill, kBlock, grid);
  for (const Convex& stroke : r.stroke) Fill(tables, stroke, kBlockEdge, grid);
  for (const Point& p : r.corner) {
    const TapBox box = TapsOf(
        tables, {p.x - kStrokeReach, p.x + kStrokeReach, p.y - kStrokeReach, p.y + kStrokeReach});
    ForEachTap(tables, box, grid, [&](int x, int y, uint8_t& tap) {
      if (OnCorner(r, x, y)) tap = kBlockEdge;
    });
  }
}

TapBox DrawAgent(const Tables& tables, const FlatScene& scene, uint8_t (*grid)[kTaps]) {
  const Point agent = MakeAgent(scene);
  const TapBox box = TapsOf(tables, {agent.x - kAgentReach, agent.x + kAgentReach,
                                     agent.y - kAgentReach, agent.y + kAgentReach});
  ForEachTap(tables, box, grid, [&](int x, int y, uint8_t& tap) {
    tap = AgentAt(agent, x, y, static_cast<Surface>(tap));
  });
  return box;
}

Tables MakeTables() {
  Tables tables = {};
  for (int t = 0; t < kTaps; ++t) tables.coordinate[t] = TapCoordinate(t);
  for (int v = 0; v <= 512; ++v) {
    tables.first_tap[v] = static_cast<uint8_t>(
        std::lower_bound(tables.coordinate.begin(), tables.coordinate.end(), v) -
        tables.coordinate.begin());
  }
  FillParts(tables);
  for (int part = 0; part < 2; ++part) {
    const Rectangle goal = MakeRectangle(part, kGoalPosition, kGoalPosition, kGoalAngle);
    Fill(tables, goal.fill, kGoal, tables.grid);
  }
  const TapBox everything = {0, kTaps, 0, kTaps};
  DrawWalls(tables, everything, tables.grid);
  Blend(tables, tables.grid, everything, tables.rgb);
  return tables;
}

void RestoreGrid(const Tables& tables, const TapBox& box, uint8_t (*grid)[kTaps]) {
  for (int row = box.y_begin; row < box.y_end; ++row) {
    std::copy(tables.grid[row] + box.x_begin, tables.grid[row] + box.x_end,
              grid[row] + box.x_begin);
  }
}

void CheckFinite(const FlatScene& scene, int index) {
  const float values[] = {scene.agent_x, scene.agent_y, scene.block_x, scene.block_y,
                          scene.block_angle};
  for (float value : values) {
    if (std::isfinite(value)) continue;
    throw BadInput("scene " + std::to_string(index) +
                   " cannot be drawn: a position or the angle is not finite; the simulation that "
                   "it comes from has diverged");
  }
}

}  // namespace

void RasteriseCpu(const FlatScene* scenes, int count, uint8_t* rgb) {
  static const Tables tables = MakeTables();
  uint8_t grid[kTaps][kTaps];
  std::memcpy(grid, tables.grid, sizeof(grid));
  for (int i = 0; i < count; ++i, rgb += kPictureBytes) {
    CheckFinite(scenes[i], i);
    std::memcpy(rgb, tables.rgb, kPictureBytes);
    TapBox boxes[3];  // bar, stem, agent
    for (int part = 0; part < 2; ++part) {
      const Rectangle r =
          MakeRectangle(part, scenes[i].block_x, scenes[i].block_y, scenes[i].block_angle);
      DrawRectangle(tables, r, grid);
      boxes[part] = TapsOf(tables, r.box);
    }
    boxes[2] = DrawAgent(tables, scenes[i], grid);
    for (const TapBox& box : boxes) DrawWalls(tables, box, grid);
    for (const TapBox& box : boxes) Blend(tables, grid, box, rgb);
    for (const TapBox& box : boxes) RestoreGrid(tables, box, grid);
  }
}

}  // namespace mjp
