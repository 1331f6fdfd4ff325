#include "policy/checkpoint/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/half.h"
#include "policy/checkpoint/random_checkpoint.h"
#include "policy/unet/unet_model.h"
#include "tests/support/error_of.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::Checkpoint;
using mjp::WeightFormat;

std::map<std::string, mjp::Tensor> TensorsOf(const Checkpoint& checkpoint) {
  std::map<std::string, mjp::Tensor> tensors;
  checkpoint.network->VisitTensors(
      [&](const std::string& name, const mjp::Tensor& tensor) { tensors[name] = tensor; });
  return tensors;
}

void ExpectSameStats(const mjp::FeatureStats& a, const mjp::FeatureStats& b) {
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.second, b.second);
}

// Writes, loads and compares everything; returns what was loaded.
std::shared_ptr<const Checkpoint> RoundTrip(const Checkpoint& original, WeightFormat format) {
  const TempDir dir;
  mjp::WriteCheckpoint(dir / "new/policy", original, format);
  auto loaded = mjp::LoadCheckpoint(dir / "new/policy");
  EXPECT_EQ(mjp::ConfigToJson(*loaded), mjp::ConfigToJson(original));
  EXPECT_EQ(loaded->parameter_count, original.parameter_count);
  EXPECT_EQ(loaded->stats.cameras.size(), original.stats.cameras.size());
  for (size_t i = 0; i < original.stats.cameras.size(); ++i) {
    ExpectSameStats(loaded->stats.cameras[i], original.stats.cameras[i]);
  }
  ExpectSameStats(loaded->stats.state, original.stats.state);
  ExpectSameStats(loaded->stats.environment, original.stats.environment);
  ExpectSameStats(loaded->stats.action, original.stats.action);
  const auto expected = TensorsOf(original), got = TensorsOf(*loaded);
  EXPECT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) {
      ADD_FAILURE() << name << " is lost";
      continue;
    }
    EXPECT_EQ(found->second.shape, tensor.shape) << name;
    size_t different = 0;
    for (size_t i = 0; i < tensor.data.size(); ++i) {
      const bool exact = format == WeightFormat::kF32 || name.ends_with("pos_grid");
      const float value =
          exact ? tensor.data[i] : mjp::HalfToFloat(mjp::FloatToHalf(tensor.data[i]));
      different += !(found->second.data[i] == value);
    }
    EXPECT_EQ(different, 0u) << name;
  }
  return loaded;
}

TEST(CheckpointWriter, RandomWeightsStayKnownAsSuch) {
  const auto random = RoundTrip(*mjp::NamedNetwork("compact"), WeightFormat::kF16);
  EXPECT_THAT(random->sha256, testing::MatchesRegex("random-[0-9a-f]{64}"));
  EXPECT_TRUE(mjp::HasRandomWeights(*RoundTrip(*random, WeightFormat::kF16)));
  EXPECT_FALSE(mjp::HasRandomWeights(*RoundTrip(*CompactCheckpoint(), WeightFormat::kF16)));
}

TEST(CheckpointWriter, RoundTripsTheCompactNetwork) {
  const auto checkpoint = CompactCheckpoint();
  RoundTrip(*checkpoint, WeightFormat::kF32);
  const auto loaded = RoundTrip(*checkpoint, WeightFormat::kF16);
  EXPECT_EQ(loaded->config.type, "diffusion_compact");
  EXPECT_EQ(mjp::UnetOf(*loaded).config.encoder.kind, mjp::EncoderKind::kCompact);
  EXPECT_EQ(mjp::UnetOf(*loaded).config.encoder.pool, mjp::PoolKind::kFlatten);
}

TEST(CheckpointWriter, RoundTripsLeRobotsNetwork) {
  RoundTrip(*GoldenCheckpoint(GoldenCase::kLeRobotCompact), WeightFormat::kF16);
}

TEST(CheckpointWriter, RoundTripsTheNotebook) {
  const auto loaded = RoundTrip(*GoldenCheckpoint(GoldenCase::kNotebook), WeightFormat::kF16);
  EXPECT_EQ(mjp::UnetOf(*loaded).config.cond_order, mjp::CondOrder::kImageState);
  EXPECT_EQ(mjp::UnetOf(*loaded).config.encoder.feature_dim, 512);
}

TEST(CheckpointWriter, RoundTripsConfigVariants) {
  Checkpoint checkpoint = *TinyStateCheckpoint();
  const auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(checkpoint));
  mjp::SchedulerConfig& scheduler = network->config.scheduler;
  scheduler.kind = mjp::SamplerKind::kDdim;
  scheduler.beta_schedule = mjp::BetaSchedule::kLinear;
  scheduler.beta_start = 0.0003f;
  scheduler.prediction = mjp::PredictionType::kVPrediction;
  scheduler.variance = mjp::VarianceType::kFixedLarge;
  scheduler.clip_sample = false;
  scheduler.clip_range = 1.2f;
  scheduler.inference_steps = 7;
  checkpoint.network = network;
  checkpoint.stats.state.mode = mjp::Normalization::kQuantiles;
  checkpoint.stats.environment.mode = mjp::Normalization::kMeanStd;
  checkpoint.stats.action.mode = mjp::Normalization::kQuantile10;
  const auto loaded = RoundTrip(checkpoint, WeightFormat::kF32);
  EXPECT_EQ(mjp::UnetOf(*loaded).config.scheduler.beta_start, 0.0003f);
  EXPECT_EQ(mjp::UnetOf(*loaded).config.scheduler.inference_steps, 7);
}

TEST(CheckpointWriter, WritesTheSameBytesAgain) {
  const TempDir dir;
  const auto checkpoint = TinyStateCheckpoint();
  mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF16);
  mjp::WriteCheckpoint(dir / "b", *mjp::LoadCheckpoint(dir / "a"), WeightFormat::kF16);
  for (const char* name : {"config.json", "model.safetensors", "policy_preprocessor.json"}) {
    EXPECT_EQ(mjp::ReadFile(dir / ("a/" + std::string(name)), 1 << 20),
              mjp::ReadFile(dir / ("b/" + std::string(name)), 1 << 20))
        << name;
  }
}

TEST(CheckpointWriter, RefusesWhatHalfPrecisionCannotHold) {
  const TempDir dir;
  Checkpoint checkpoint = *TinyStateCheckpoint();
  const auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(checkpoint));
  network->unet.out.bias.data[0] = 1e6f;
  checkpoint.network = network;
  try {
    mjp::WriteCheckpoint(dir / "a", checkpoint, WeightFormat::kF16);
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("diffusion.unet.final_conv.1.bias"));
  }
  EXPECT_THROW(mjp::LoadCheckpoint(dir / "a"), mjp::Error);
}

// LeRobot's network with a resize and a crop, of small channels.
std::shared_ptr<const Checkpoint> Cropped(int resize_height, int resize_width, int crop_height,
                                          int crop_width) {
  mjp::UnetPolicyConfig config = mjp::NamedConfig("lerobot");
  config.cameras[0].height = config.cameras[0].width = 320;
  config.encoder.resize_height = resize_height;
  config.encoder.resize_width = resize_width;
  config.encoder.crop_height = crop_height;
  config.encoder.crop_width = crop_width;
  config.unet.down_dims = {8, 16};
  mjp::NormalizerStats stats;
  stats.cameras = {{mjp::Normalization::kMeanStd, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}}};
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  return mjp::RandomCheckpoint(config, stats, 0);
}

TEST(CheckpointWriter, ACropIsReadBackAsItWas) {
  for (const auto& [height, width] : {std::pair{90, 279}, std::pair{33, 103}, std::pair{99, 309}}) {
    const auto loaded = RoundTrip(*Cropped(100, 310, height, width), WeightFormat::kF16);
    EXPECT_EQ(mjp::UnetOf(*loaded).config.encoder.crop_height, height);
    EXPECT_EQ(mjp::UnetOf(*loaded).config.encoder.crop_width, width);
  }
  EXPECT_EQ(mjp::ConfigToJson(*Cropped(100, 310, 100, 310))["crop_shape"], nullptr);
}

TEST(CheckpointWriter, ABatchNormIsWrittenAsItWasMade) {
  const TempDir dir;
  mjp::UnetPolicyConfig config = mjp::NamedConfig("lerobot");
  config.encoder.group_norm = false;
  config.unet.down_dims = {8, 16};
  mjp::NormalizerStats stats;
  stats.cameras.resize(1);
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  const auto network = std::make_shared<mjp::UnetModel>();
  network->config = config;
  mjp::MadeTensors made;
  const auto checkpoint =
      mjp::MadeCheckpoint(config, stats, network, *mjp::MakeRandomSource(0), "0", &made);
  EXPECT_THAT(ErrorOf([&] { mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF32); }),
              testing::HasSubstr("folded"));
  mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF32, &made);
  const auto loaded = mjp::LoadCheckpoint(dir / "a");
  EXPECT_EQ(loaded->parameter_count, checkpoint->parameter_count);
  const mjp::UnetModel& read = mjp::UnetOf(*loaded);
  EXPECT_FALSE(read.config.encoder.group_norm);
  const mjp::EncoderWeights &expected = network->encoders.at(0), &got = read.encoders.at(0);
  EXPECT_EQ(got.stem.weight.data, expected.stem.weight.data);
  EXPECT_EQ(got.stem.bias.data, expected.stem.bias.data);
  EXPECT_EQ(got.blocks.back().conv2.weight.data, expected.blocks.back().conv2.weight.data);
  EXPECT_EQ(got.pos_grid.data, expected.pos_grid.data);
  EXPECT_EQ(read.unet.out.weight.data, network->unet.out.weight.data);
}

TEST(CheckpointWriter, WhatCannotBeReadBackLeavesTheOldCheckpoint) {
  const TempDir dir;
  mjp::WriteCheckpoint(dir / "a", *TinyStateCheckpoint(), WeightFormat::kF32);
  const auto refusal = [&](const Checkpoint& checkpoint) {
    const std::string error =
        ErrorOf([&] { mjp::WriteCheckpoint(dir / "a", checkpoint, WeightFormat::kF32); });
    EXPECT_EQ(mjp::ConfigToJson(*mjp::LoadCheckpoint(dir / "a")),
              mjp::ConfigToJson(*TinyStateCheckpoint()));
    return error;
  };
  EXPECT_THAT(refusal(*Cropped(96, 128, 84, 100)), testing::HasSubstr("no crop_ratio gives"));
  const auto with = [](const std::shared_ptr<const Checkpoint>& of, const auto& change) {
    auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(*of));
    change(network->config);
    Checkpoint checkpoint = *of;
    checkpoint.network = network;
    return checkpoint;
  };
  EXPECT_THAT(refusal(with(TinyStateCheckpoint(), [](auto& config) { config.horizon = 12; })),
              testing::HasSubstr("must be a multiple of 8"));
  EXPECT_THAT(refusal(with(Cropped(0, 0, 84, 84),
                           [](auto& config) { config.encoder.stage_channels[3] = 256; })),
              testing::HasSubstr("cannot say the shape of this network, as of tensor"));
  EXPECT_THAT(refusal(with(TinyStateCheckpoint(),
                           [](auto& config) { config.scheduler.temperature = 1e30f; })),
              testing::HasSubstr("temperature"));
}

TEST(CheckpointWriter, PicturesOfSeveralModesLeaveTheOldCheckpoint) {
  const TempDir dir;
  mjp::UnetPolicyConfig config = mjp::NamedConfig("compact");
  config.cameras.push_back(config.cameras[0]);
  config.cameras[1].name = "observation.images.wrist";
  mjp::NormalizerStats stats;
  stats.cameras.resize(2);
  stats.state = stats.action = {mjp::Normalization::kMinMax, {0, 0}, {512, 512}};
  mjp::WriteCheckpoint(dir / "a", *mjp::RandomCheckpoint(config, stats, 0), WeightFormat::kF16);
  const std::string before = mjp::LoadCheckpoint(dir / "a")->sha256;
  for (const int other : {0, 1}) {
    mjp::NormalizerStats mixed = stats;
    mixed.cameras[other] = {mjp::Normalization::kMeanStd, {0, 0, 0}, {1, 1, 1}};
    const auto checkpoint = mjp::RandomCheckpoint(config, mixed, 1);
    EXPECT_THAT(ErrorOf([&] { mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF16); }),
                testing::AllOf(testing::HasSubstr("one mode for all pictures"),
                               testing::HasSubstr("observation.images.wrist"),
                               testing::HasSubstr("IDENTITY"), testing::HasSubstr("MEAN_STD")));
    EXPECT_EQ(mjp::LoadCheckpoint(dir / "a")->sha256, before);
  }
}

TEST(CheckpointWriter, StatsJsonGoesWithItsCheckpointAlone) {
  const TempDir dir;
  const auto checkpoint = TinyStateCheckpoint();
  mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF32);
  dir.Write("a/stats.json", "{}");
  mjp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF32);
  EXPECT_FALSE(std::filesystem::exists(dir / "a/stats.json"));
  mjp::LoadCheckpoint(dir / "a");

  std::filesystem::create_directory(dir / "mine");
  dir.Write("mine/stats.json", "{}");
  dir.Write("mine/config.json", "{}");  // as where weights are still to come
  EXPECT_THAT(ErrorOf([&] { mjp::WriteCheckpoint(dir / "mine", *checkpoint, WeightFormat::kF32); }),
              testing::HasSubstr("mine/stats.json: is not of a checkpoint"));
  EXPECT_TRUE(std::filesystem::exists(dir / "mine/stats.json"));
  EXPECT_FALSE(std::filesystem::exists(dir / "mine/model.safetensors"));
}

TEST(Sha256, MatchesTheStandardsExamples) {
  const auto of = [](const std::string& text) {
    return mjp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace mjp_test
