// How the pictures of a training were drawn: look.json.

#include "policy/pictures/picture_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/network_model.h"
#include "policy/inspect.h"
#include "policy/unet/unet_model.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::Json;
using testing::AllOf;
using testing::HasSubstr;

Json MujocoLook() {
  return {{"renderer", "mujoco"}, {"drawn_shape", {240, 320}},
          {"samples", 1},         {"shadows", false},
          {"reflections", true},  {"skybox", true},
          {"haze", true},         {"fog", false}};
}

class PictureLookTest : public ::testing::Test {
 protected:
  PictureLookTest() { WriteSmallCheckpoint(path_); }

  void WriteLook(const Json& json) { folder_.Write("policy/look.json", json.dump()); }
  std::string RefusalOf(const Json& json) {
    WriteLook(json);
    try {
      mjp::LoadCheckpoint(path_);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      EXPECT_THAT(error.what(), HasSubstr("look.json"));
      return error.what();
    }
    return "";
  }

  const TempDir folder_;
  const std::string path_ = folder_ / "policy";
};

TEST_F(PictureLookTest, IsReadAndWrittenAndShown) {
  EXPECT_TRUE(mjp::LoadCheckpoint(path_)->network->trained_looks().empty());
  const Json raster = {{"renderer", "raster"}, {"drawn_shape", {512, 512}}};
  for (const Json& written : {MujocoLook(), raster}) {
    WriteLook({{"observation.image", written}});
    const auto checkpoint = mjp::LoadCheckpoint(path_);
    mjp::WriteCheckpoint(folder_ / "copy", *checkpoint, mjp::WeightFormat::kF16);
    const auto copy = mjp::LoadCheckpoint(folder_ / "copy");
    EXPECT_EQ(mjp::LooksToJson(copy->network->trained_looks()),
              (Json{{"observation.image", written}}));
  }
  WriteLook({{"observation.image", MujocoLook()}});
  EXPECT_THAT(mjp::InspectCheckpoint(path_, {}),
              HasSubstr("observation.image drawn by mujoco, at 320 x 240, with 1 sample a pixel, "
                        "without shadows, with reflections"));
  EXPECT_THAT(mjp::InspectCheckpoint(path_, {.json = true}), HasSubstr("\"renderer\": \"mujoco\""));
}

// It changes no action, and the certificate of a policy is one of actions.
TEST_F(PictureLookTest, IsNotOfTheIdentity) {
  const auto before = mjp::LoadCheckpoint(path_)->files;
  WriteLook({{"observation.image", MujocoLook()}});
  EXPECT_EQ(mjp::LoadCheckpoint(path_)->files, before);
}

TEST_F(PictureLookTest, IsNotThatOfTheCheckpointBefore) {
  const auto plain = mjp::LoadCheckpoint(path_);
  WriteLook({{"observation.image", MujocoLook()}});
  mjp::WriteCheckpoint(path_, *plain, mjp::WeightFormat::kF16);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/look.json"));
}

// as a download that is not whole leaves it
TEST_F(PictureLookTest, ALinkThatLeadsNowhereIsRefused) {
  for (const char* name : {"look.json", "policy_preprocessor.json"}) {
    const std::filesystem::path link = std::filesystem::path(path_) / name;
    const bool there = std::filesystem::exists(link);
    if (there) std::filesystem::rename(link, folder_ / "kept");
    std::filesystem::create_symlink("../../blobs/none", link);
    try {
      mjp::LoadCheckpoint(path_);
      ADD_FAILURE() << name << " was taken for absent";
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
    std::filesystem::remove(link);
    if (there) std::filesystem::rename(folder_ / "kept", link);
  }
  EXPECT_NO_THROW(mjp::LoadCheckpoint(path_));
}

TEST_F(PictureLookTest, WhatIsUnknownIsRefusedByName) {
  const auto refusal = [&](const std::string& key, const Json& value) {
    Json look = MujocoLook();
    look[key] = value;
    return RefusalOf({{"observation.image", look}});
  };
  EXPECT_EQ(refusal("shadows", true), "");
  EXPECT_THAT(refusal("renderer", "raytracer"),
              AllOf(HasSubstr("observation.image"),
                    HasSubstr("\"raytracer\"; supported are: mujoco, raster")));
  EXPECT_THAT(refusal("bloom", true), AllOf(HasSubstr("observation.image"), HasSubstr("bloom")));
  EXPECT_THAT(refusal("shadows", nullptr), HasSubstr("shadows"));
  EXPECT_THAT(refusal("shadows", 1), HasSubstr("shadows"));
  EXPECT_THAT(refusal("samples", 0), HasSubstr("samples"));
  EXPECT_THAT(refusal("drawn_shape", {96}), HasSubstr("drawn_shape"));
  EXPECT_THAT(refusal("renderer", "raster"), HasSubstr("samples"));  // it has no such choice
  EXPECT_THAT(RefusalOf(Json::array()), HasSubstr("object"));
  EXPECT_THAT(RefusalOf({{"observation.image", 3}}), HasSubstr("observation.image"));
  EXPECT_THAT(RefusalOf({{"observation.wrist", MujocoLook()}}),
              HasSubstr("\"observation.wrist\", which is no camera"));
}

TEST(UnlikeTrainingTest, EachDifferenceIsSaid) {
  const std::vector<mjp::CameraFeature> cameras = {{"left", 3, 96, 96}, {"right", 3, 96, 96}};
  const mjp::PictureLook look = mjp::ParseLook(MujocoLook(), "look");
  mjp::PictureLook other = look;
  other.shadows = true;
  other.samples = 4;
  const mjp::PictureLooks trained = {{"right", other}};
  const std::vector<mjp::PictureLook> drawn = {look, look}, same = {look, other};
  EXPECT_EQ(mjp::UnlikeTraining(cameras, trained, same), "");
  EXPECT_EQ(mjp::UnlikeTraining(cameras, trained, {}), "");  // who draws does not say
  EXPECT_THAT(mjp::UnlikeTraining(cameras, trained, drawn),
              HasSubstr("training did: right, drawn with 4 samples a pixel, with shadows then, "
                        "with 1 sample a pixel, without shadows now; score it"));
}

}  // namespace
}  // namespace mjp_test
