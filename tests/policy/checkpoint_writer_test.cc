#include "policy/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "kernels/error.h"
#include "policy/checkpoint.h"
#include "policy/file.h"
#include "policy/half.h"
#include "policy/network_builder.h"
#include "policy/random_checkpoint.h"
#include "policy/sha256.h"
#include "tests/support/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace pusht_test {
namespace {

using dp::Checkpoint;
using dp::WeightFormat;

std::map<std::string, dp::Tensor> TensorsOf(const Checkpoint& checkpoint) {
  std::map<std::string, dp::Tensor> tensors;
  dp::VisitTensors(
      dp::NamesOf(checkpoint.config), checkpoint,
      [&](const std::string& name, const dp::Tensor& tensor) { tensors[name] = tensor; });
  return tensors;
}

void ExpectSameStats(const dp::FeatureStats& a, const dp::FeatureStats& b) {
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.second, b.second);
}

// Writes, loads and compares everything; returns what was loaded.
std::shared_ptr<const Checkpoint> RoundTrip(const Checkpoint& original, WeightFormat format) {
  const TempDir dir;
  dp::WriteCheckpoint(dir / "new/policy", original, format);
  auto loaded = dp::LoadCheckpoint(dir / "new/policy");
  EXPECT_EQ(dp::ConfigToJson(loaded->config, loaded->stats),
            dp::ConfigToJson(original.config, original.stats));
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
      const float value = exact ? tensor.data[i] : dp::HalfToFloat(dp::FloatToHalf(tensor.data[i]));
      different += !(found->second.data[i] == value);
    }
    EXPECT_EQ(different, 0u) << name;
  }
  return loaded;
}

TEST(CheckpointWriter, RandomWeightsStayKnownAsSuch) {
  const auto random = RoundTrip(*dp::NamedNetwork("compact"), WeightFormat::kF16);
  EXPECT_THAT(random->sha256, testing::MatchesRegex("random-[0-9a-f]{64}"));
  EXPECT_TRUE(dp::HasRandomWeights(*RoundTrip(*random, WeightFormat::kF16)));
  EXPECT_FALSE(dp::HasRandomWeights(*RoundTrip(*CompactCheckpoint(), WeightFormat::kF16)));
}

TEST(CheckpointWriter, RoundTripsTheCompactNetwork) {
  const auto checkpoint = CompactCheckpoint();
  RoundTrip(*checkpoint, WeightFormat::kF32);
  const auto loaded = RoundTrip(*checkpoint, WeightFormat::kF16);
  EXPECT_EQ(loaded->config.type, "diffusion_compact");
  EXPECT_EQ(loaded->config.encoder.kind, dp::EncoderKind::kCompact);
  EXPECT_EQ(loaded->config.encoder.pool, dp::PoolKind::kFlatten);
}

TEST(CheckpointWriter, RoundTripsLeRobotsNetwork) {
  RoundTrip(*GoldenCheckpoint(GoldenCase::kLeRobotCompact), WeightFormat::kF16);
}

TEST(CheckpointWriter, RoundTripsTheNotebook) {
  const auto loaded = RoundTrip(*GoldenCheckpoint(GoldenCase::kNotebook), WeightFormat::kF16);
  EXPECT_EQ(loaded->config.cond_order, dp::CondOrder::kImageState);
  EXPECT_EQ(loaded->config.encoder.feature_dim, 512);
}

TEST(CheckpointWriter, RoundTripsConfigVariants) {
  Checkpoint checkpoint = *TinyStateCheckpoint();
  dp::SchedulerConfig& scheduler = checkpoint.config.scheduler;
  scheduler.kind = dp::SamplerKind::kDdim;
  scheduler.beta_schedule = dp::BetaSchedule::kLinear;
  scheduler.beta_start = 0.0003f;
  scheduler.prediction = dp::PredictionType::kVPrediction;
  scheduler.variance = dp::VarianceType::kFixedLarge;
  scheduler.clip_sample = false;
  scheduler.clip_range = 1.2f;
  scheduler.inference_steps = 7;
  checkpoint.stats.state.mode = dp::Normalization::kQuantiles;
  checkpoint.stats.environment.mode = dp::Normalization::kMeanStd;
  checkpoint.stats.action.mode = dp::Normalization::kQuantile10;
  const auto loaded = RoundTrip(checkpoint, WeightFormat::kF32);
  EXPECT_EQ(loaded->config.scheduler.beta_start, 0.0003f);
  EXPECT_EQ(loaded->config.scheduler.inference_steps, 7);
}

TEST(CheckpointWriter, WritesTheSameBytesAgain) {
  const TempDir dir;
  const auto checkpoint = TinyStateCheckpoint();
  dp::WriteCheckpoint(dir / "a", *checkpoint, WeightFormat::kF16);
  dp::WriteCheckpoint(dir / "b", *dp::LoadCheckpoint(dir / "a"), WeightFormat::kF16);
  for (const char* name : {"config.json", "model.safetensors", "policy_preprocessor.json"}) {
    EXPECT_EQ(dp::ReadFile(dir / ("a/" + std::string(name)), 1 << 20),
              dp::ReadFile(dir / ("b/" + std::string(name)), 1 << 20))
        << name;
  }
}

TEST(CheckpointWriter, RefusesWhatHalfPrecisionCannotHold) {
  const TempDir dir;
  Checkpoint checkpoint = *TinyStateCheckpoint();
  checkpoint.unet.out.bias.data[0] = 1e6f;
  try {
    dp::WriteCheckpoint(dir / "a", checkpoint, WeightFormat::kF16);
    FAIL();
  } catch (const dp::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("diffusion.unet.final_conv.1.bias"));
  }
  EXPECT_THROW(dp::LoadCheckpoint(dir / "a"), dp::Error);
}

TEST(Sha256, MatchesTheStandardsExamples) {
  const auto of = [](const std::string& text) {
    return dp::Sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace pusht_test
