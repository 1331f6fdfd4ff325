#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/npy.h"
#include "tasks/aloha/transfer_cube.h"
#include "tests/support/renderer.h"
#include "tests/support/shared_data.h"

// stb_image, private to this file
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STBI_ONLY_PNG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace mjp::app {
namespace {

constexpr int kWidth = 640, kHeight = 480, kPositions = 23;
using Picture = std::vector<uint8_t>;

class AlohaPictures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }
};

Picture ReadPng(const std::string& path) {
  int width = 0, height = 0, channels = 0;
  uint8_t* pixels = stbi_load(path.c_str(), &width, &height, &channels, 3);
  if (pixels == nullptr || width != kWidth || height != kHeight) {
    ADD_FAILURE() << path << ": is no PNG of 640 x 480 pixels";
    return Picture(size_t{kWidth} * kHeight * 3);
  }
  Picture picture(pixels, pixels + size_t{kWidth} * kHeight * 3);
  stbi_image_free(pixels);
  return picture;
}

// gym-aloha draws with shadows and 4 samples a pixel, this project's renderer with neither: by that
// 18 % of the pixels differ, by 1.6 levels in the mean (the same figures from MuJoCo in Python).
TEST_F(AlohaPictures, DifferFromTheOriginalsByShadowsAndEdgesAlone) {
  SHARED_OR_SKIP(positions_path, "aloha/frames_qpos.npy");
  SHARED_OR_SKIP(first_frame, "aloha/frames/0.png");
  const std::string folder = first_frame.substr(0, first_frame.size() - 5);
  const std::vector<double> positions = ReadNpy(positions_path).ToDoubles();
  TransferCube simulation;
  const auto source = MakeMujocoPictureSource(
      simulation.model(), {.cameras = {"top"}, .width = kWidth, .height = kHeight});
  Picture drawn(size_t{kWidth} * kHeight * 3);
  double sum = 0, changed = 0;
  const size_t frames = positions.size() / kPositions;
  for (size_t k = 0; k < frames; ++k) {
    const Picture real = ReadPng(folder + std::to_string(k) + ".png");
    std::copy_n(&positions[k * kPositions], kPositions, simulation.data()->qpos);
    mj_forward(simulation.model(), simulation.data());
    source->Render(simulation.model(), simulation.data(), drawn);
    for (size_t i = 0; i < drawn.size(); i += 3) {
      bool same = true;
      for (size_t c = i; c < i + 3; ++c) {
        sum += std::abs(drawn[c] - real[c]);
        same = same && drawn[c] == real[c];
      }
      changed += same ? 0 : 1;
    }
  }
  const double pixels = static_cast<double>(frames) * kWidth * kHeight;
  std::printf("%zu pictures: %.2f levels in the mean, %.1f %% of the pixels differ\n", frames,
              sum / (3 * pixels), 100 * changed / pixels);
  EXPECT_LT(sum / (3 * pixels), 2.0);
  EXPECT_LT(changed / pixels, 0.25);
}

// A start shows what the task is about, whatever stands beside the project.
TEST_F(AlohaPictures, ShowTheCubeWhereItIs) {
  TransferCube simulation;
  simulation.Start(0);
  const auto source = MakeMujocoPictureSource(
      simulation.model(), {.cameras = {"top"}, .width = kWidth, .height = kHeight});
  Picture drawn(size_t{kWidth} * kHeight * 3);
  source->Render(simulation.model(), simulation.data(), drawn);
  double x = 0, y = 0, count = 0;
  for (int row = 0; row < kHeight; ++row) {
    for (int column = 0; column < kWidth; ++column) {
      const uint8_t* pixel = &drawn[3 * (size_t{kWidth} * row + column)];
      if (pixel[0] < 100 || 3 * pixel[1] > pixel[0] || 3 * pixel[2] > pixel[0]) continue;
      x += column, y += row, ++count;
    }
  }
  ASSERT_GT(count, 200);
  // the camera stands 0.73 m above the cube's upper face and looks straight down, y up in the
  // picture
  const double focal = kHeight / (2 * std::tan(78 * mjPI / 360));
  const mjtNum* cube = simulation.data()->qpos + 16;
  EXPECT_NEAR(x / count, kWidth / 2.0 + focal * cube[0] / 0.73, 6);
  EXPECT_NEAR(y / count, kHeight / 2.0 - focal * (cube[1] - 0.6) / 0.73, 6);
}

}  // namespace
}  // namespace mjp::app
