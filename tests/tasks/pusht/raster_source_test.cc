#include "tasks/pusht/pictures/raster_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "plugin/pictures/picture_source.h"
#include "tasks/pusht/physics/scene.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/pusht/pictures/render_states.h"

namespace mjp::app {
namespace {

const State kState = {120.25, 300.5, 250, 180, 2.5};

class RasterSourceTest : public testing::Test {
 protected:
  RasterSourceTest() : model_(LoadModel(ModelPath("pusht.xml"))) {}

  std::string Refusal(const mjp::PictureRequest& request) {
    try {
      mjp::CreatePictureSource("raster", model_.get(), request);
    } catch (const mjp::Error& error) {
      return error.what();
    }
    return "no error";
  }

  ModelPtr model_;
};

TEST_F(RasterSourceTest, DrawsTheStateOfTheJoints) {
  const DataPtr data = MakeData(model_.get());
  Scene(model_.get()).ToQpos(kState, data->qpos);
  const auto source = mjp::CreatePictureSource("raster", model_.get(), {.cameras = {"top"}});
  std::vector<uint8_t> drawn(mjp::kPictureBytes), expected(mjp::kPictureBytes);
  source->Render(model_.get(), data.get(), drawn);
  const mjp::FlatScene flat = ToFlatScene(kState);
  mjp::RasteriseCpu(&flat, 1, expected.data());
  EXPECT_EQ(drawn, expected);
  mjp::FlatScene read;
  ASSERT_TRUE(source->ReadScene(data.get(), std::as_writable_bytes(std::span(&read, 1))));
  EXPECT_NEAR(read.block_x, kState.block_x, 1e-4);
  EXPECT_NEAR(read.block_angle, kState.block_angle, 1e-6);
  const mjp::SceneDrawer* drawer = mjp::SceneDrawerOf("raster");
  ASSERT_NE(drawer, nullptr);
  std::ranges::fill(drawn, 0);
  drawer->DrawOnCpu(mjp::SceneBytes({&read, 1}), drawn);
  EXPECT_EQ(drawn, expected);
  EXPECT_THROW(drawer->DrawOnCpu(mjp::SceneBytes({&read, 1}).first(19), drawn), mjp::Error);
}

TEST_F(RasterSourceTest, RefusesViewsItDoesNotDraw) {
  EXPECT_THAT(Refusal({.cameras = {"top", "top"}}), testing::HasSubstr("one picture of 96 x 96"));
  EXPECT_THAT(Refusal({.cameras = {"top"}, .width = 64}),
              testing::HasSubstr("one picture of 96 x 96"));
  EXPECT_THAT(Refusal({.cameras = {"wrist"}}), testing::HasSubstr("\"wrist\" is not in the model"));
  model_->mat_rgba[0] = 0.5f;
  EXPECT_THAT(Refusal({.cameras = {"top"}}), testing::HasSubstr("geom \"ground\" of body"));
  model_->mat_rgba[0] = 1;
  EXPECT_EQ(Refusal({.cameras = {"top"}}), "no error");
  model_->cam_fovy[0] = 4;
  EXPECT_THAT(Refusal({.cameras = {"top"}}), testing::HasSubstr("use renderer \"mujoco\""));
}

TEST(RenderStates, DrawsEveryRow) {
  const std::vector<double> rows = {100, 100, 200, 200, 0, 300, 120, 256, 256, 4};
  const NpyArray pictures = RenderStates(MakeNpy(rows, {2, 5}), "raster");
  EXPECT_EQ(pictures.shape, (std::vector<int64_t>{2, 96, 96, 3}));
  const mjp::FlatScene scenes[2] = {{100, 100, 200, 200, 0}, {300, 120, 256, 256, 4}};
  std::vector<uint8_t> expected(2 * mjp::kPictureBytes);
  mjp::RasteriseCpu(scenes, 2, expected.data());
  EXPECT_EQ(pictures.bytes, expected);
}

TEST(RenderStates, WrongArraysAreErrors) {
  const auto message = [](std::vector<double> values, std::vector<int64_t> shape) {
    try {
      RenderStates(MakeNpy(values, shape), "raster");
    } catch (const mjp::Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({1, 2, 3, 4}, {1, 4}), testing::HasSubstr("shape (1, 4); expected (N, 5)"));
  EXPECT_THAT(message({1, 2, 3, 4, 5}, {5}), testing::HasSubstr("shape (5)"));
  EXPECT_THAT(message({1, 2, 3, 4, NAN}, {1, 5}), testing::HasSubstr("row 0"));
  EXPECT_THAT(message({1, 2, 3, 4, 5, 1e300, 2, 3, 4, 5}, {2, 5}),
              testing::HasSubstr("row 1 of the states has 1e+300, which no picture can show"));
}

}  // namespace
}  // namespace mjp::app
