#include "tasks/pusht/pictures/rasterise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/shared/exact_math.h"
#include "tasks/pusht/pictures/raster_pixel.h"
#include "tests/support/random_scenes.h"
#include "tests/support/real_frames.h"
#include "tests/support/shared_data.h"

namespace mjp {
namespace {

using mjp_test::RandomScenes;
using Picture = std::vector<uint8_t>;

Picture Draw(const std::vector<FlatScene>& scenes) {
  Picture rgb(scenes.size() * kPictureBytes);
  RasteriseCpu(scenes.data(), static_cast<int>(scenes.size()), rgb.data());
  return rgb;
}

std::vector<int> Red(const Picture& rgb, std::vector<std::pair<int, int>> row_column) {
  std::vector<int> values;
  for (auto [row, column] : row_column) values.push_back(rgb[(row * kPictureSize + column) * 3]);
  return values;
}

// An independent drawing in double precision, point by point from distances.
struct Vec {
  double x, y;
};
struct Quad {
  Vec corner[4];
};

Quad TurnedQuad(const std::vector<Vec>& local, double x, double y, double angle) {
  Quad quad;
  for (int k = 0; k < 4; ++k) {
    const Vec v = local[k];
    quad.corner[k] = {std::nearbyint(x + std::cos(angle) * v.x - std::sin(angle) * v.y),
                      std::nearbyint(y + std::sin(angle) * v.x + std::cos(angle) * v.y)};
  }
  return quad;
}

double DistanceToSegment(Vec p, Vec a, Vec b) {
  const double ux = b.x - a.x, uy = b.y - a.y;
  const double t =
      std::clamp(((p.x - a.x) * ux + (p.y - a.y) * uy) / (ux * ux + uy * uy), 0.0, 1.0);
  return std::hypot(p.x - a.x - t * ux, p.y - a.y - t * uy);
}

double DistanceToOutline(Vec p, const Quad& q) {
  double nearest = 1e9;
  for (int k = 0; k < 4; ++k) {
    nearest = std::min(nearest, DistanceToSegment(p, q.corner[k], q.corner[(k + 1) % 4]));
  }
  return nearest;
}

// Largest signed distance beyond the lines of the edges.
double DistanceOutside(Vec p, const Quad& q) {
  double outside = -1e9;
  for (int k = 0; k < 4; ++k) {
    const Vec a = q.corner[k], b = q.corner[(k + 1) % 4];
    outside = std::max(outside, ((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x)) /
                                    std::hypot(b.x - a.x, b.y - a.y));
  }
  return outside;
}

const std::vector<Vec> kBar = {{-60, 30}, {60, 30}, {60, 0}, {-60, 0}};
const std::vector<Vec> kStem = {{-15, 30}, {-15, 120}, {15, 120}, {15, 30}};

using Colour = std::array<int, 3>;

Colour ColourAt(Vec p, const FlatScene& scene, const std::vector<Quad>& block,
                const std::vector<Quad>& goal) {
  constexpr double kTie = 1e-9;  // borders belong to the shape
  Colour colour = {255, 255, 255};
  for (const Quad& q : goal) {
    if (DistanceOutside(p, q) <= 0.65 + kTie) colour = {144, 238, 144};
  }
  for (const Quad& q : block) {
    if (DistanceOutside(p, q) <= 0.65 + kTie) colour = {143, 163, 184};
    if (DistanceToOutline(p, q) <= 2.05 + kTie) colour = {119, 136, 153};
  }
  const double from_agent = std::hypot(p.x - std::nearbyint(scene.agent_x) + 0.5,
                                       p.y - std::nearbyint(scene.agent_y) + 0.5);
  if (from_agent <= 14.8) colour = {65, 105, 225};
  if (from_agent <= 10.67) colour = {78, 126, 255};
  const auto near_line = [](double v) { return std::abs(v - 5) <= 2 || std::abs(v - 506) <= 2; };
  const auto along_line = [](double v) { return v >= 5 && v <= 506; };
  if ((near_line(p.x) && along_line(p.y)) || (near_line(p.y) && along_line(p.x))) {
    colour = {211, 211, 211};
  }
  return colour;
}

// cv2.resize's bilinear blend in its own fixed point: weights in 1/2048, then two truncations.
int CvBlend(const int (&tap)[4], double fx, double fy) {
  const int ax = static_cast<int>(std::nearbyint(fx * 2048));
  const int ay = static_cast<int>(std::nearbyint(fy * 2048));
  const int upper = (tap[0] * (2048 - ax) + tap[1] * ax) >> 4;
  const int lower = (tap[2] * (2048 - ax) + tap[3] * ax) >> 4;
  return (((upper * (2048 - ay)) >> 16) + ((lower * ay) >> 16) + 2) >> 2;
}

Picture ReferenceDrawing(const FlatScene& scene) {
  const std::vector<Quad> block = {
      TurnedQuad(kBar, scene.block_x, scene.block_y, scene.block_angle),
      TurnedQuad(kStem, scene.block_x, scene.block_y, scene.block_angle)};
  const std::vector<Quad> goal = {TurnedQuad(kBar, 256, 256, std::acos(-1) / 4),
                                  TurnedQuad(kStem, 256, 256, std::acos(-1) / 4)};
  Picture rgb;
  for (int row = 0; row < kPictureSize; ++row) {
    for (int column = 0; column < kPictureSize; ++column) {
      const double x = (column + 0.5) * 512 / 96 - 0.5, y = (row + 0.5) * 512 / 96 - 0.5;
      const double x0 = std::floor(x), y0 = std::floor(y);
      const Colour taps[4] = {ColourAt({x0, y0}, scene, block, goal),
                              ColourAt({x0 + 1, y0}, scene, block, goal),
                              ColourAt({x0, y0 + 1}, scene, block, goal),
                              ColourAt({x0 + 1, y0 + 1}, scene, block, goal)};
      for (int c = 0; c < 3; ++c) {
        rgb.push_back(static_cast<uint8_t>(
            CvBlend({taps[0][c], taps[1][c], taps[2][c], taps[3][c]}, x - x0, y - y0)));
      }
    }
  }
  return rgb;
}

TEST(Rasterise, MatchesTheBenchmarksOwnPictures) {
  SHARED_OR_SKIP(frames_path, "pusht/frames_u8.npy");
  SHARED_OR_SKIP(states_path, "pusht/frames_state.npy");
  const mjp_test::RealFrames real = mjp_test::ReadRealFrames(frames_path, states_path);
  const double error = mjp_test::MeanAbsoluteError(Draw(real.scenes), real.rgb);
  std::printf("mean error per channel value of %zu real pictures: %.4f levels\n",
              real.scenes.size(), error);
  EXPECT_LE(error, 0.11);
}

TEST(Rasterise, DrawsTheBenchmarksBorder) {
  const Picture rgb = Draw({{256, 256, 200, 150, 1}});
  EXPECT_EQ(Red(rgb, {{48, 0}, {48, 1}, {48, 2}, {48, 3}}), (std::vector{247, 233, 255, 255}));
  EXPECT_EQ(Red(rgb, {{48, 95}, {48, 94}, {48, 93}, {48, 92}}), (std::vector{247, 233, 255, 255}));
  EXPECT_EQ(Red(rgb, {{0, 48}, {1, 48}, {2, 48}, {3, 48}}), (std::vector{248, 233, 255, 255}));
  EXPECT_EQ(Red(rgb, {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}}),
            (std::vector{255, 248, 248, 248, 222, 233, 247, 233, 255}));
}

TEST(Rasterise, EqualsADrawingFromDistancesInDoublePrecision) {
  // angles of many turns are left out: there the reference's own sine is of another number
  std::vector<FlatScene> scenes = RandomScenes(80, 1);
  std::erase_if(scenes, [](const FlatScene& s) { return std::abs(s.block_angle) > 10; });
  const Picture drawn = Draw(scenes);
  int different = 0;
  for (size_t i = 0; i < scenes.size(); ++i) {
    const Picture reference = ReferenceDrawing(scenes[i]);
    if (!std::equal(reference.begin(), reference.end(), drawn.begin() + i * kPictureBytes)) {
      ++different;
    }
  }
  EXPECT_EQ(different, 0) << "of " << scenes.size();
}

TEST(Rasterise, EveryPixelOnItsOwnGivesTheSameBits) {
  const std::vector<FlatScene> scenes = RandomScenes(300, 2);
  const Picture drawn = Draw(scenes);
  for (size_t i = 0; i < scenes.size(); ++i) {
    raster::PreparedScene prepared;
    for (int k = 0; k < prepared.kCorners; ++k) raster::PrepareCorner(scenes[i], k, &prepared);
    for (int k = 0; k < prepared.kCorners; ++k) raster::PrepareEdge(k, &prepared);
    for (int k = 0; k < prepared.kRectangles; ++k) raster::PrepareBoxes(k, &prepared);
    Picture single;
    for (int p = 0; p < kPictureSize * kPictureSize; ++p) {
      const uint32_t rgb = raster::RasterPixel(prepared, p % kPictureSize, p / kPictureSize);
      for (int c = 0; c < 3; ++c) single.push_back(static_cast<uint8_t>(rgb >> (8 * c)));
    }
    ASSERT_TRUE(std::equal(single.begin(), single.end(), drawn.begin() + i * kPictureBytes))
        << "scene " << i;
  }
}

TEST(Rasterise, DoesNotDependOnTheBatchAndWritesNothingElse) {
  const std::vector<FlatScene> scenes = RandomScenes(64, 3);
  const Picture together = Draw(scenes);
  constexpr int kGuard = 64;
  for (size_t i = 0; i < scenes.size(); ++i) {
    Picture guarded(kPictureBytes + 2 * kGuard, 0xa5);
    RasteriseCpu(&scenes[i], 1, guarded.data() + kGuard);
    EXPECT_TRUE(std::equal(guarded.begin() + kGuard, guarded.end() - kGuard,
                           together.begin() + i * kPictureBytes));
    const auto untouched = [](uint8_t v) { return v == 0xa5; };
    EXPECT_TRUE(std::all_of(guarded.begin(), guarded.begin() + kGuard, untouched));
    EXPECT_TRUE(std::all_of(guarded.end() - kGuard, guarded.end(), untouched));
  }
}

TEST(Rasterise, ObjectsFarAwayAreOutOfSight) {
  const Picture empty = Draw({{-100, -100, -400, -400, 0}});
  for (float far : {-1e4f, 1e4f, -3e38f, 3e38f}) {
    EXPECT_EQ(Draw({{far, 200, 200, far, 1}}), empty);
    EXPECT_EQ(Draw({{200, far, far, 200, 1e30f}}), empty);
  }
}

TEST(Rasterise, RefusesAStateThatIsNotFinite) {
  Picture rgb(kPictureBytes);
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (int field = 0; field < 5; ++field) {
      float values[5] = {100, 100, 200, 200, 1};
      values[field] = bad;
      const FlatScene scene = {values[0], values[1], values[2], values[3], values[4]};
      EXPECT_THROW(RasteriseCpu(&scene, 1, rgb.data()), Error) << "field " << field;
    }
  }
}

TEST(ExactMath, SineAndCosineAreThoseOfTheLibrary) {
  for (int i = -40000; i <= 40000; ++i) {
    const double angle = i * 1.5707e-4;
    double s, c;
    exact::SinCos(angle, &s, &c);
    ASSERT_NEAR(s, std::sin(angle), 1e-15) << angle;
    ASSERT_NEAR(c, std::cos(angle), 1e-15) << angle;
  }
}

}  // namespace
}  // namespace mjp
