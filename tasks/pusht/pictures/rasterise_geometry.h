#ifndef TASKS_PUSHT_PICTURES_RASTERISE_GEOMETRY_H_
#define TASKS_PUSHT_PICTURES_RASTERISE_GEOMETRY_H_

#include <cstdint>

#include "kernels/shared/exact_math.h"
#include "kernels/shared/host_device.h"
#include "kernels/shared/picture_taps.h"
#include "tasks/pusht/pictures/rasterise.h"

// Geometry of the flat scene, shared by the CPU and the GPU. After the corners are rounded to whole
// pixels everything is integer arithmetic, and the corners come from exact_math.h, so both draw the
// same bits.
//
// What is drawn are the taps of picture_taps.h alone.

namespace mjp::raster {

// What a tap shows; an index into kPalette.
enum Surface : uint8_t { kWhite, kGoal, kBlock, kBlockEdge, kAgent, kAgentInner, kWall, kSurfaces };

// Colours of the surfaces, and one channel of all of them in one word, 8 bits each.
inline constexpr uint8_t kPalette[kSurfaces][3] = {
    {255, 255, 255}, {144, 238, 144}, {143, 163, 184}, {119, 136, 153},
    {65, 105, 225},  {78, 126, 255},  {211, 211, 211}};
constexpr uint64_t PackedPalette(int channel) {
  uint64_t packed = 0;
  for (int i = 0; i < kSurfaces; ++i) packed |= uint64_t{kPalette[i][channel]} << (8 * i);
  return packed;
}

template <int kChannel>
inline constexpr uint64_t kPackedPalette = PackedPalette(kChannel);

// One channel of a surface's colour: a shift of a constant, so that a GPU needs no table.
template <int kChannel>
MJP_HOST_DEVICE constexpr int Colour(int surface) {
  return static_cast<int>(kPackedPalette<kChannel> >> (8 * surface)) & 255;
}

// Whole pixels lo <= v <= hi along x and y.
struct Box {
  int x_lo, x_hi, y_lo, y_hi;
  MJP_HOST_DEVICE bool Contains(int x, int y) const {
    return x >= x_lo && x <= x_hi && y >= y_lo && y <= y_hi;
  }
};

// The points with a[k] x + b[k] y + c[k] >= 0 for all four k.
struct Convex {
  int a[4], b[4], c[4];
  Box box;  // contains all of them
  MJP_HOST_DEVICE bool Contains(int x, int y) const {
    int sign = 0;
    for (int k = 0; k < 4; ++k) sign |= a[k] * x + b[k] * y + c[k];
    return sign >= 0;
  }
};

struct Point {
  int x, y;
};

// A rectangle of the T with rounded corners: its fill and the strokes along its four edges.
struct Rectangle {
  Point corner[4];  // round the rectangle so that the inside has negative cross products
  Convex fill, stroke[4];
  Box box;  // contains all of it
};

// Largest integer whose square is at most n, 0 <= n < 65536.
MJP_HOST_DEVICE constexpr int FloorSqrt(int n) {
  int root = 0;
  for (int bit = 128; bit > 0; bit /= 2) {
    if ((root + bit) * (root + bit) <= n) root += bit;
  }
  return root;
}

inline constexpr int kStrokeReach = 2;        // whole pixels within the stroke's radius of 2.05
inline constexpr double kFarAway = 4096;      // positions are clamped to +-this: never visible
inline constexpr double kGoalPosition = 256;  // both ways
inline constexpr double kGoalAngle = 0.78539816339744831;

// A coordinate within +-kFarAway; a NaN becomes -kFarAway.
MJP_HOST_DEVICE inline double ClampCoordinate(double v) {
  return !(v >= -kFarAway) ? -kFarAway : v > kFarAway ? kFarAway : v;
}

// Corner k of the bar (part 0) or the stem (part 1) of a T with its origin at (x, y), rounded
// half to even. An angle that is not finite counts as 0.
MJP_HOST_DEVICE inline Point RoundedCorner(int part, int k, double x, double y, double angle) {
  using exact::Add;
  using exact::Mul;
  // bar: (-60, 30), (60, 30), (60, 0), (-60, 0); stem: (-15, 30), (-15, 120), (15, 120), (15, 30)
  const bool bar = part == 0, first = k == 0 || k == 3, left = bar ? first : k < 2;
  const double u = (bar ? 60 : 15) * (left ? -1 : 1);
  const double v = bar ? (k < 2 ? 30 : 0) : (first ? 30 : 120);
  double s, c;
  exact::SinCos(angle - angle == 0 ? angle : 0, &s, &c);
  return {static_cast<int>(rint(Add(Add(Mul(c, u), -Mul(s, v)), ClampCoordinate(x)))),
          static_cast<int>(rint(Add(Add(Mul(s, u), Mul(c, v)), ClampCoordinate(y))))};
}

// Makes edge k, from corner k to the next: its half-plane of the fill, and its stroke.
MJP_HOST_DEVICE inline void FinishEdge(int k, Rectangle* r) {
  const Point from = r->corner[k], to = r->corner[(k + 1) & 3];
  const int dx = to.x - from.x, dy = to.y - from.y, length2 = dx * dx + dy * dy;
  const int offset = dy * from.x - dx * from.y;  // cross product = dx y - dy x + offset
  // a filled polygon contains its border: within 0.65 pixels of the edge's line
  r->fill.a[k] = dy;
  r->fill.b[k] = -dx;
  r->fill.c[k] = FloorSqrt(length2 * 169 / 400) - offset;
  // the stroke: beside the edge, within 2.05 pixels of its line
  const int reach = FloorSqrt(static_cast<int>(length2 * 42025LL / 10000));
  const int start = dx * from.x + dy * from.y;
  r->stroke[k] = {
      {dx, -dx, dy, -dy},
      {dy, -dy, -dx, dx},
      {-start, start + length2, reach - offset, reach + offset},
      {(dx < 0 ? to.x : from.x) - kStrokeReach, (dx < 0 ? from.x : to.x) + kStrokeReach,
       (dy < 0 ? to.y : from.y) - kStrokeReach, (dy < 0 ? from.y : to.y) + kStrokeReach}};
}

// Makes the boxes of the fill and of the whole from the finished strokes.
MJP_HOST_DEVICE inline void FinishBoxes(Rectangle* r) {
  Box all = r->stroke[0].box;
  for (int k = 1; k < 4; ++k) {
    const Box box = r->stroke[k].box;
    all = {box.x_lo < all.x_lo ? box.x_lo : all.x_lo, box.x_hi > all.x_hi ? box.x_hi : all.x_hi,
           box.y_lo < all.y_lo ? box.y_lo : all.y_lo, box.y_hi > all.y_hi ? box.y_hi : all.y_hi};
  }
  r->box = r->fill.box = all;
}

// True within the reach of the stroke's round ends at the corners.
MJP_HOST_DEVICE inline bool OnCorner(const Rectangle& r, int x, int y) {
  bool on = false;
  for (const Point& p : r.corner) {
    const int dx = x - p.x, dy = y - p.y;
    on |= dx * dx + dy * dy <= kStrokeReach * kStrokeReach;
  }
  return on;
}

// True on the outline, which is drawn over the fill.
MJP_HOST_DEVICE inline bool OnOutline(const Rectangle& r, int x, int y) {
  bool on = OnCorner(r, x, y);
  for (const Convex& stroke : r.stroke) on |= stroke.Contains(x, y);
  return on;
}

// The agent: concentric discs about its rounded position shifted by half a pixel up and left.
MJP_HOST_DEVICE inline Point MakeAgent(const FlatScene& scene) {
  return {static_cast<int>(rint(ClampCoordinate(scene.agent_x))),
          static_cast<int>(rint(ClampCoordinate(scene.agent_y)))};
}
// kAgentInner, kAgent, or `under` outside. The radii are 10.67 and 14.8 pixels.
MJP_HOST_DEVICE inline Surface AgentAt(Point agent, int x, int y, Surface under) {
  const int dx = 2 * (x - agent.x) + 1, dy = 2 * (y - agent.y) + 1;
  const int distance2 = dx * dx + dy * dy;  // in half pixels
  return distance2 <= 455 ? kAgentInner : distance2 <= 876 ? kAgent : under;
}
inline constexpr int kAgentReach = 15;  // whole pixels about its position, both ways

// Four lines of width 5 that end at each other's middle, so the corners stay free.
MJP_HOST_DEVICE constexpr bool OnWall(int x, int y) {
  const bool across_x = (x >= 3 && x <= 7) || (x >= 504 && x <= 508);
  const bool across_y = (y >= 3 && y <= 7) || (y >= 504 && y <= 508);
  return (across_x && y >= 5 && y <= 506) || (across_y && x >= 5 && x <= 506);
}

}  // namespace mjp::raster

#endif  // TASKS_PUSHT_PICTURES_RASTERISE_GEOMETRY_H_
