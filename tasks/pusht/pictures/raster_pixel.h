#ifndef TASKS_PUSHT_PICTURES_RASTER_PIXEL_H_
#define TASKS_PUSHT_PICTURES_RASTER_PIXEL_H_

#include "tasks/pusht/pictures/rasterise_geometry.h"

// One pixel of the flat scene's picture on its own: what a GPU thread computes. Gives the same bits
// as RasteriseCpu. A scene that is not finite is drawn as if the object were far away.

namespace mjp::raster {

// A scene ready for RasterPixel.
struct PreparedScene {
  static constexpr int kRectangles = 4;  // the block's bar and stem, the goal's bar and stem
  static constexpr int kCorners = 4 * kRectangles;
  Rectangle rectangle[kRectangles];
  Point agent;
};

// Preparation in three steps with a barrier between them. Steps 1 and 2: items 0 ... kCorners - 1;
// step 3: items 0 ... kRectangles - 1; in any order or at once.
MJP_HOST_DEVICE inline void PrepareCorner(const FlatScene& scene, int item, PreparedScene* out) {
  const int which = item / 4, corner = item % 4;
  const bool block = which < 2;
  out->rectangle[which].corner[corner] =
      RoundedCorner(which % 2, corner, block ? scene.block_x : kGoalPosition,
                    block ? scene.block_y : kGoalPosition, block ? scene.block_angle : kGoalAngle);
  if (item == 0) out->agent = MakeAgent(scene);
}
MJP_HOST_DEVICE inline void PrepareEdge(int item, PreparedScene* out) {
  FinishEdge(item % 4, &out->rectangle[item / 4]);
}
MJP_HOST_DEVICE inline void PrepareBoxes(int item, PreparedScene* out) {
  FinishBoxes(&out->rectangle[item]);
}

// What is seen at a point of the 512 x 512 drawing: the last thing drawn there.
MJP_HOST_DEVICE inline Surface SurfaceAt(const PreparedScene& scene, int x, int y) {
  if (OnWall(x, y)) return kWall;
  const Surface agent = AgentAt(scene.agent, x, y, kWhite);
  if (agent != kWhite) return agent;
  for (int part = 1; part >= 0; --part) {
    const Rectangle& r = scene.rectangle[part];
    if (!r.box.Contains(x, y)) continue;
    if (OnOutline(r, x, y)) return kBlockEdge;
    if (r.fill.Contains(x, y)) return kBlock;
  }
  for (int part = 2; part < 4; ++part) {
    const Rectangle& r = scene.rectangle[part];
    if (r.box.Contains(x, y) && r.fill.Contains(x, y)) return kGoal;
  }
  return kWhite;
}

template <int kChannel>
MJP_HOST_DEVICE constexpr uint32_t BlendChannel(const Surface (&tap)[4], int weight_x,
                                                int weight_y) {
  const int upper = BlendAlongX(Colour<kChannel>(tap[0]), Colour<kChannel>(tap[1]), weight_x);
  const int lower = BlendAlongX(Colour<kChannel>(tap[2]), Colour<kChannel>(tap[3]), weight_x);
  return SumRows(RowPart(upper, 2048 - weight_y), RowPart(lower, weight_y));
}

// Colour of pixel (x, y) of the 96 x 96 picture: red | green << 8 | blue << 16.
MJP_HOST_DEVICE inline uint32_t RasterPixel(const PreparedScene& scene, int x, int y) {
  const int px = TapCoordinate(2 * x), py = TapCoordinate(2 * y);
  const Surface tap[4] = {SurfaceAt(scene, px, py), SurfaceAt(scene, px + 1, py),
                          SurfaceAt(scene, px, py + 1), SurfaceAt(scene, px + 1, py + 1)};
  const int wx = SecondTapWeight(x), wy = SecondTapWeight(y);
  return BlendChannel<0>(tap, wx, wy) | BlendChannel<1>(tap, wx, wy) << 8 |
         BlendChannel<2>(tap, wx, wy) << 16;
}

}  // namespace mjp::raster

#endif  // TASKS_PUSHT_PICTURES_RASTER_PIXEL_H_
