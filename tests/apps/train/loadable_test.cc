// Options either are refused before anything is trained, or give a checkpoint that loads as the
// policy that was trained.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/train/data/pictures.h"
#include "apps/train/imitation/policy.h"
#include "apps/train/network/architectures.h"
#include "apps/train/optimisation/parameters.h"
#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/unet/unet_model.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Frames of one camera, 128 x 96 pixels.
RecordedFrames Frames() {
  RecordedFrames frames;
  frames.cameras = {{"observation.image", 3, 96, 128}};
  frames.state = at::rand({4, 2});
  frames.environment = at::empty({4, 0});
  frames.action = at::rand({4, 3});
  frames.begin = {0, 4};
  return frames;
}

// Writes `policy` with `tensors` and loads it. Returns what was loaded, having compared its config.
std::shared_ptr<const Checkpoint> LoadedAgain(const Architecture& policy,
                                              const Parameters& parameters) {
  const mjp_test::TempDir folder;
  const Checkpoint trained = parameters.Export(policy, parameters.master());
  WriteCheckpoint(folder / "policy", trained, WeightFormat::kF16);
  auto loaded = LoadCheckpoint(folder / "policy");
  EXPECT_EQ(ConfigToJson(*loaded), ConfigToJson(trained));
  EXPECT_EQ(loaded->parameter_count, trained.parameter_count);
  return loaded;
}

struct Size {
  int height = 0, width = 0;
};

ImitationShape ShapeOf(Size resize, Size crop, int horizon) {
  ImitationShape shape;
  shape.resize_height = resize.height, shape.resize_width = resize.width;
  shape.crop_height = crop.height, shape.crop_width = crop.width;
  shape.horizon = horizon;
  return shape;
}

TEST(LoadableTest, ACropAfterAResizeLoadsAsItWasTrainedOrIsRefused) {
  struct Row {
    Size resize, crop;
    const char* refusal;  // what it says; "": none
    Size loaded;
  };
  const std::vector<Row> rows = {
      {{96, 128}, {84, 100}, "--crop 100x84: no crop_ratio gives it of --resize 128x96; give ", {}},
      {{96, 128}, {84, 84}, "give 84x63, say", {}},
      {{96, 128}, {96, 112}, "give 112x84, say", {}},
      {{100, 310}, {90, 279}, "", {90, 279}},
      {{96, 128}, {84, 112}, "", {84, 112}},
      {{96, 128}, {95, 127}, "", {95, 127}},
      {{96, 128}, {96, 128}, "", {}},  // the whole picture
      {{}, {84, 100}, "", {84, 100}},
      {{}, {97, 84}, "larger than the pictures", {}},
  };
  ArchitectureOptions options;
  options.name = "lerobot";
  options.unet_channels = {8, 16};
  for (const Row& row : rows) {
    const ImitationShape shape = ShapeOf(row.resize, row.crop, 8);
    SCOPED_TRACE(testing::Message() << row.resize.height << "x" << row.resize.width << " "
                                    << row.crop.height << "x" << row.crop.width);
    const std::string refusal =
        mjp_test::ErrorOf([&] { ImitationPolicy(options, shape, Frames()); });
    EXPECT_THAT(refusal, HasSubstr(row.refusal));
    EXPECT_EQ(refusal.empty(), std::string(row.refusal).empty()) << refusal;
    if (!refusal.empty()) continue;
    const Architecture policy = ImitationPolicy(options, shape, Frames());
    const auto loaded =
        LoadedAgain(policy, Parameters(InitialImitationWeights(policy, 1), at::kCPU, at::kFloat));
    const EncoderConfig& encoder = UnetOf(*loaded).config.encoder;
    EXPECT_EQ(encoder.resize_height, row.resize.height);
    EXPECT_EQ(encoder.resize_width, row.resize.width);
    EXPECT_EQ(encoder.crop_height, row.loaded.height);
    EXPECT_EQ(encoder.crop_width, row.loaded.width);
  }
}

// The validation's loss is of what the policy sees: of 7 pixels left over 4 are before the crop.
TEST(LoadableTest, TheMiddleOfAPictureIsThePolicys) {
  EncoderConfig encoder;
  EXPECT_TRUE(at::equal(CenterCrop(at::ones({1, 5, 5, 3}), encoder), at::ones({1, 5, 5, 3})));
  encoder.crop_height = encoder.crop_width = 84;
  for (const auto& [size, first] : {std::pair{91, 4}, std::pair{89, 2}, std::pair{96, 6}}) {
    const at::Tensor line = at::arange(size, at::kByte);
    const at::Tensor rows = line.view({1, size, 1, 1}).expand({2, size, size, 3});
    const at::Tensor columns = line.view({1, 1, size, 1}).expand({2, size, size, 3});
    for (const at::Tensor& pictures : {rows, columns}) {
      const at::Tensor crop = CenterCrop(pictures, encoder);
      EXPECT_EQ(crop.size(1), 84);
      EXPECT_EQ(crop.size(2), 84);
      EXPECT_EQ(crop.min().item<int>(), first);
      EXPECT_EQ(crop.max().item<int>(), first + 83);
    }
  }
}

TEST(LoadableTest, AHorizonThatTheLoaderRefusesIsNotTrained) {
  struct Row {
    std::vector<int> channels;
    int horizon, multiple;
  };
  for (const Row& row : std::vector<Row>{{{8}, 4, 2},
                                         {{8}, 5, 2},
                                         {{8, 16}, 8, 4},
                                         {{8, 16}, 6, 4},
                                         {{8, 16, 16}, 16, 8},
                                         {{8, 16, 16}, 12, 8}}) {
    ArchitectureOptions options;
    options.unet_channels = row.channels;
    options.stage_channels = {16};
    options.action_steps = 1;
    const ImitationShape shape = ShapeOf({}, {}, row.horizon);
    if (row.horizon % row.multiple != 0) {
      EXPECT_THAT(mjp_test::ErrorOf([&] { ImitationPolicy(options, shape, Frames()); }),
                  HasSubstr("--horizon must be a multiple of " + std::to_string(row.multiple)));
      continue;
    }
    const Architecture policy = ImitationPolicy(options, shape, Frames());
    const auto loaded =
        LoadedAgain(policy, Parameters(InitialImitationWeights(policy, 1), at::kCPU, at::kFloat));
    EXPECT_EQ(loaded->config.horizon, row.horizon);
  }
}

TEST(LoadableTest, APolicyWithoutPicturesLoadsAgain) {
  RecordedFrames frames = Frames();
  frames.cameras.clear();
  frames.environment = at::rand({4, 5});
  ArchitectureOptions options;
  options.unet_channels = {8, 16};
  const Architecture policy = ImitationPolicy(options, ShapeOf({}, {}, 8), frames);
  const auto loaded =
      LoadedAgain(policy, Parameters(InitialImitationWeights(policy, 1), at::kCPU, at::kFloat));
  EXPECT_EQ(loaded->config.environment_dim, 5);
}

TEST(LoadableTest, ANetworkOfPushtLoadsAgainOrIsRefused) {
  const auto options = [](const std::string& name, std::vector<int> unet, std::vector<int> stages,
                          int stem) {
    ArchitectureOptions made;
    made.name = name;
    made.unet_channels = std::move(unet);
    made.stage_channels = std::move(stages);
    made.stem_channels = stem;
    return made;
  };
  struct Row {
    ArchitectureOptions options;
    const char* refusal;  // what it says; "": none
  };
  for (const Row& row : std::vector<Row>{
           {options("compact", {8, 16}, {16, 32}, 16), ""},
           {options("compact", {8, 8, 16, 16}, {16}, 0), ""},
           {options("compact", {8, 8, 16, 16, 16}, {16}, 0), "--unet-channels: 5 levels need"},
           {options("compact", std::vector<int>(40, 8), {16}, 0), "--unet-channels: at most 8"},
           {options("lerobot", {8, 16}, {}, 0), ""},
           {options("lerobot", {8, 16}, {64, 128}, 0), "--stage-channels: --network lerobot"},
           {options("lerobot", {8, 16}, {}, 32), "--stem-channels: --network lerobot"},
           {options("dit", {}, {16, 32}, 16), ""}}) {
    const std::string refusal = mjp_test::ErrorOf([&] { MakeArchitecture(row.options); });
    EXPECT_THAT(refusal, HasSubstr(row.refusal));
    EXPECT_EQ(refusal.empty(), std::string(row.refusal).empty()) << refusal;
    if (!refusal.empty()) continue;
    const Architecture policy = MakeArchitecture(row.options);
    LoadedAgain(policy, Parameters(policy, 12, 1, at::kCPU, at::kFloat));
  }
}

TEST(LoadableTest, WhatConfigJsonCannotSayIsFoundBeforeTheFirstStep) {
  Architecture policy = MakeArchitecture({});
  CheckLoads(policy);
  policy.config.unet.groups = 3;
  EXPECT_THAT(mjp_test::ErrorOf([&] { CheckLoads(policy); }),
              AllOf(HasSubstr("config.json"), HasSubstr("n_groups")));
}

}  // namespace
}  // namespace mjp::app
