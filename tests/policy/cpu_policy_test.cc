#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/shared/philox.h"
#include "policy/input_check.h"
#include "policy/policy.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tests/support/check_close.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/gpu/host_picture.h"

namespace {

using mjp::PolicyInput;
using mjp::PolicyOptions;
using mjp::PolicyOutput;

PolicyOptions Options(int batch, int threads) {
  PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.sampler.kind = mjp::SamplerKind::kDdim;
  options.sampler.steps = 5;
  options.batch = batch;
  options.threads = threads;
  options.scene_drawer = &mjp::FlatSceneDrawer();
  return options;
}

// Observations of `count` environments; environment i's do not depend on count.
struct Observations {
  std::vector<uint8_t> frames;
  std::vector<mjp::FlatScene> scenes;
  std::vector<float> state, environment;
  std::vector<mjp::NoiseKey> keys;
  PolicyInput input;

  Observations(const mjp::PolicyConfig& config, int count) {
    for (int n = 0; n < count; ++n) {
      for (int i = 0; i < config.n_obs_steps; ++i) {
        const auto at = static_cast<float>(100 + 40 * n + 7 * i);
        for (int k = 0; k < config.state_dim; ++k) state.push_back(at + 3.0f * k);
        for (int k = 0; k < config.environment_dim; ++k) environment.push_back(at + 5.0f * k);
        if (!config.cameras.empty()) scenes.push_back({at, at + 9, 256, 300 - at / 4, 0.1f * n});
        for (int k = 0; k < mjp::kPictureBytes && !config.cameras.empty(); ++k) {
          frames.push_back(static_cast<uint8_t>((k * 7 + n * 31 + i * 11) % 251));
        }
      }
      keys.push_back({100000u + n, static_cast<uint32_t>(n % 3)});
    }
    input.count = count;
    input.frames = frames;
    input.state = state;
    input.environment = environment;
    input.keys = keys;
  }
};

std::vector<float> Actions(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                           const PolicyOptions& options, int count) {
  const auto policy = mjp::Policy::Create(checkpoint, options);
  const Observations observations(checkpoint->config, count);
  PolicyOutput output;
  policy->Infer(observations.input, output);
  return output.actions;
}

class CpuPolicyTest : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const mjp::Checkpoint> checkpoint_ =
      GetParam() == "state" ? mjp_test::TinyStateCheckpoint() : mjp_test::CompactCheckpoint();
};

TEST_P(CpuPolicyTest, BatchAndNeighboursDoNotChangeABit) {
  const std::vector<float> alone = Actions(checkpoint_, Options(1, 1), 1);
  for (const int batch : {2, 7}) {
    const std::vector<float> many = Actions(checkpoint_, Options(batch, 1), batch);
    EXPECT_EQ(std::vector<float>(many.begin(), many.begin() + alone.size()), alone);
    EXPECT_EQ(Actions(checkpoint_, Options(batch, 1), 1), alone) << "a batch not filled";
  }
}

TEST_P(CpuPolicyTest, ThreadsDoNotChangeABit) {
  for (const int count : {1, 5}) {
    const std::vector<float> one = Actions(checkpoint_, Options(count, 1), count);
    EXPECT_EQ(Actions(checkpoint_, Options(count, 2), count), one);
    EXPECT_EQ(Actions(checkpoint_, Options(count, 5), count), one);
  }
}

TEST_P(CpuPolicyTest, TheSamePolicyAgainGivesTheSameBits) {
  const auto policy = mjp::Policy::Create(checkpoint_, Options(3, 2));
  const Observations three(checkpoint_->config, 3), one(checkpoint_->config, 1);
  PolicyOutput first, between, again;
  policy->Infer(three.input, first);
  policy->Infer(one.input, between);
  policy->Infer(three.input, again);
  EXPECT_EQ(first.actions, again.actions);
}

TEST_P(CpuPolicyTest, ParallelDenoisingFollowsTheChain) {
  PolicyOptions options = Options(2, 1);
  options.sampler.kind = mjp::SamplerKind::kDdpm;
  options.sampler.steps = 100;
  const std::vector<float> chain = Actions(checkpoint_, options, 2);
  options.sampler.parallel_window = 16;
  options.sampler.parallel_tolerance = 0.002f;  // random weights: less smooth than trained ones
  // 1e-3 of the action range
  EXPECT_TRUE(mjp_test::CheckClose(Actions(checkpoint_, options, 2), chain, 0.5));
}

TEST_P(CpuPolicyTest, TimesEveryPassWhereAsked) {
  PolicyOptions options = Options(2, 1);
  const std::vector<float> expected = Actions(checkpoint_, options, 2);
  options.timing = mjp::TimingDetail::kSteps;
  const auto policy = mjp::Policy::Create(checkpoint_, options);
  const Observations observations(checkpoint_->config, 2);
  PolicyOutput output;
  policy->Infer(observations.input, output);
  EXPECT_EQ(output.actions, expected);
  const mjp::StageTimes::Span& denoise = output.times[mjp::Stage::kDenoise];
  ASSERT_EQ(output.times.steps.size(), 5u);
  double at = denoise.begin;
  for (const auto& step : output.times.steps) {
    EXPECT_GE(step.begin, at);
    EXPECT_GT(step.end, step.begin);
    at = step.end;
  }
  EXPECT_EQ(at, denoise.end);
}

TEST_P(CpuPolicyTest, NoiseIsNamedByItsKey) {
  const auto policy = mjp::Policy::Create(checkpoint_, Options(1, 1));
  Observations observations(checkpoint_->config, 1);
  std::vector<std::vector<float>> actions;
  for (const mjp::NoiseKey key : {mjp::NoiseKey{1, 0}, {2, 0}, {1, 1}}) {
    observations.keys[0] = key;
    PolicyOutput output;
    policy->Infer(observations.input, output);
    actions.push_back(output.actions);
  }
  EXPECT_NE(actions[0], actions[1]);
  EXPECT_NE(actions[0], actions[2]);
}

TEST_P(CpuPolicyTest, DecisionsInARowShareTheNoise) {
  Observations observations(checkpoint_->config, 1);
  for (const mjp::SamplerKind kind : {mjp::SamplerKind::kDdim, mjp::SamplerKind::kDdpm}) {
    PolicyOptions options = Options(1, 1);
    options.sampler.kind = kind;
    const auto plain = mjp::Policy::Create(checkpoint_, options);
    options.sampler.hold_noise = 3;
    const auto held = mjp::Policy::Create(checkpoint_, options);
    const auto actions = [&](mjp::Policy& policy, uint32_t decision) {
      observations.keys[0] = {7, decision};
      PolicyOutput output;
      policy.Infer(observations.input, output);
      return output.actions;
    };
    constexpr uint32_t kNumbers[] = {0, 0, 0, 1, 1, 1, 2};
    for (uint32_t decision = 0; decision < 7; ++decision) {
      EXPECT_EQ(actions(*held, decision), actions(*plain, kNumbers[decision])) << decision;
    }
    EXPECT_NE(actions(*held, 2), actions(*held, 3));
  }
}

// With the temperature T noise by its address is what noise of deviation T, given, is with 1.
TEST_P(CpuPolicyTest, TheTemperatureScalesAllNoiseOfAChain) {
  constexpr float kTemperature = 0.375f;  // its products are rounded once, wherever they are made
  const Observations observations(checkpoint_->config, 1);
  const int elements = checkpoint_->config.horizon * checkpoint_->config.action_dim;
  const mjp::NoiseKey key = observations.keys[0];
  const auto noise = [&](uint32_t step) {
    std::vector<float> scaled;
    for (int i = 0; i < elements; i += 4) {
      float normals[4];
      mjp::NormalQuad(key.seed, key.decision, step, static_cast<uint32_t>(i / 4), normals);
      for (int e = 0; e < std::min(4, elements - i); ++e)
        scaled.push_back(kTemperature * normals[e]);
    }
    return scaled;
  };
  std::vector<float> by_t;
  for (uint32_t t = 0; t < 100; ++t) {
    const std::vector<float> one = noise(t);
    by_t.insert(by_t.end(), one.begin(), one.end());
  }
  const std::vector<float> start = noise(mjp::kStartStep);
  for (const mjp::SamplerKind kind : {mjp::SamplerKind::kDdim, mjp::SamplerKind::kDdpm}) {
    PolicyOptions options = Options(1, 1);
    options.sampler.kind = kind;
    PolicyInput given = observations.input;
    given.x_start = start;
    given.noise_by_t = by_t;
    PolicyOutput expected, output;
    mjp::Policy::Create(checkpoint_, options)->Infer(given, expected);
    mjp::Policy::Create(checkpoint_, options)->Infer(observations.input, output);
    EXPECT_NE(output.actions, expected.actions);
    options.sampler.temperature = kTemperature;
    const auto policy = mjp::Policy::Create(checkpoint_, options);
    policy->Infer(observations.input, output);
    EXPECT_EQ(output.actions, expected.actions);
    policy->Infer(given, output);  // given noise is taken as it is
    EXPECT_EQ(output.actions, expected.actions);
  }
}

TEST_P(CpuPolicyTest, RefusesATemperatureThatIsNone) {
  for (const float temperature : {-0.1f, 2.1f, std::nanf("")}) {
    PolicyOptions options = Options(1, 1);
    options.sampler.temperature = temperature;
    EXPECT_THROW(mjp::Policy::Create(checkpoint_, options), mjp::Error) << temperature;
  }
}

TEST_P(CpuPolicyTest, HoldsTheNoiseForOneDecisionByItself) {
  const auto policy = mjp::Policy::Create(checkpoint_, Options(1, 1));
  EXPECT_EQ(policy->options().sampler.hold_noise, 1);
}

TEST_P(CpuPolicyTest, RefusesToHoldTheNoiseForNoDecision) {
  for (const int decisions : {-1, 1001}) {
    PolicyOptions options = Options(1, 1);
    options.sampler.hold_noise = decisions;
    EXPECT_THROW(mjp::Policy::Create(checkpoint_, options), mjp::Error) << decisions;
  }
}

TEST_P(CpuPolicyTest, RefusesWhatIsNotANumber) {
  const auto policy = mjp::Policy::Create(checkpoint_, Options(2, 1));
  Observations observations(checkpoint_->config, 2);
  observations.state.back() = NAN;
  PolicyOutput output;
  EXPECT_THROW(policy->Infer(observations.input, output), mjp::Error);
}

INSTANTIATE_TEST_SUITE_P(All, CpuPolicyTest, testing::Values("state", "pictures"),
                         [](const auto& info) { return info.param; });

TEST(CpuPolicyPicturesTest, ScenesAreThePicturesTheyDraw) {
  const auto checkpoint = mjp_test::CompactCheckpoint();
  const auto policy = mjp::Policy::Create(checkpoint, Options(3, 2));
  Observations observations(checkpoint->config, 3);
  mjp::RasteriseCpu(observations.scenes.data(), static_cast<int>(observations.scenes.size()),
                    observations.frames.data());
  PolicyOutput from_frames, from_scenes;
  policy->Infer(observations.input, from_frames);
  observations.input.frames = {};
  observations.input.scenes = mjp::SceneBytes(observations.scenes);
  policy->Infer(observations.input, from_scenes);
  EXPECT_EQ(from_frames.actions, from_scenes.actions);
  EXPECT_GT(from_scenes.times[mjp::Stage::kRender].end, 0);
  EXPECT_GT(from_scenes.times[mjp::Stage::kEncode].end, 0);
}

// Flat scenes, of which it draws none.
class RefusingDrawer : public mjp::SceneDrawer {
 public:
  size_t scene_bytes() const override { return mjp::FlatSceneDrawer().scene_bytes(); }
  int width() const override { return mjp::FlatSceneDrawer().width(); }
  int height() const override { return mjp::FlatSceneDrawer().height(); }
  void DrawOnCpu(std::span<const std::byte>, std::span<uint8_t>) const override {
    throw mjp::BadInput("no such scene");
  }
  std::unique_ptr<mjp::GpuSceneDrawer> MakeGpuDrawer() const override { return nullptr; }
};

TEST(CpuPolicyPicturesTest, AScenesFailureOnAnyThreadIsThePolicys) {
  const RefusingDrawer drawer;
  const auto checkpoint = mjp_test::CompactCheckpoint();
  PolicyOptions options = Options(3, 2);
  options.scene_drawer = &drawer;
  const auto policy = mjp::Policy::Create(checkpoint, options);
  Observations observations(checkpoint->config, 3);
  PolicyOutput output;
  policy->Infer(observations.input, output);  // of frames
  observations.input.frames = {};
  observations.input.scenes = mjp::SceneBytes(observations.scenes);
  for (int i = 0; i < 100; ++i) EXPECT_THROW(policy->Infer(observations.input, output), mjp::Error);
}

TEST(CpuPolicyPicturesTest, RefusesSpansOfTheWrongSize) {
  const auto checkpoint = mjp_test::CompactCheckpoint();
  const auto policy = mjp::Policy::Create(checkpoint, Options(1, 1));
  PolicyOutput output;
  Observations observations(checkpoint->config, 1);
  const PolicyInput good = observations.input;
  PolicyInput bad = good;
  bad.frames = good.frames.first(good.frames.size() - 1);
  EXPECT_THROW(policy->Infer(bad, output), mjp::Error);
  bad = good;
  bad.frames = {};
  bad.scenes = mjp::SceneBytes(observations.scenes).first(20);
  EXPECT_THROW(policy->Infer(bad, output), mjp::Error);
  bad = good;
  bad.state = {};
  EXPECT_THROW(policy->Infer(bad, output), mjp::Error);
  bad = good;
  bad.keys = {};
  EXPECT_THROW(policy->Infer(bad, output), mjp::Error);
  bad = good;
  bad.count = 2;
  EXPECT_THROW(policy->Infer(bad, output), mjp::Error);
}

TEST(CpuPolicyPicturesTest, RefusesPicturesInAGpusMemory) {
  const auto checkpoint = mjp_test::CompactCheckpoint();
  const auto policy = mjp::Policy::Create(checkpoint, Options(1, 1));
  Observations observations(checkpoint->config, 1);
  const std::vector<std::shared_ptr<const mjp::GpuPicture>> pictures(
      2, std::make_shared<mjp_test::HostPicture>(std::vector<uint8_t>(mjp::kPictureBytes)));
  observations.input.frames = {};
  observations.input.gpu_pictures = pictures;
  PolicyOutput output;
  try {
    policy->Infer(observations.input, output);
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find("runs on the CPU; give frames"), std::string::npos);
  }
}

TEST(CpuPolicyPicturesTest, PicturesInAGpusMemoryAreCheckedForTheGpu) {
  using Pictures = std::vector<std::shared_ptr<const mjp::GpuPicture>>;
  const auto checkpoint = mjp_test::CompactCheckpoint();
  PolicyOptions options = Options(1, 1);
  options.backend = mjp::Backend::kCuda;
  const auto good =
      std::make_shared<mjp_test::HostPicture>(std::vector<uint8_t>(mjp::kPictureBytes));
  const auto check = [&](const Pictures& pictures, bool frames, bool scenes) {
    Observations observations(checkpoint->config, 1);
    if (!frames) observations.input.frames = {};
    if (scenes) observations.input.scenes = mjp::SceneBytes(observations.scenes);
    observations.input.gpu_pictures = pictures;
    mjp::CheckInput(*checkpoint, options, observations.input);
  };
  EXPECT_NO_THROW(check({good, good}, false, false));
  EXPECT_THROW(check({good}, false, false), mjp::Error);
  EXPECT_THROW(check({good, good, good}, false, false), mjp::Error);
  EXPECT_THROW(check({good, nullptr}, false, false), mjp::Error);
  const auto small = std::make_shared<mjp_test::HostPicture>(std::vector<uint8_t>(1));
  EXPECT_THROW(check({good, small}, false, false), mjp::Error);
  EXPECT_THROW(check({good, good}, true, false), mjp::Error);
  EXPECT_THROW(check({good, good}, false, true), mjp::Error);
}

TEST(CpuPolicyPicturesTest, RefusesScenesWithoutADrawer) {
  const auto checkpoint = mjp_test::CompactCheckpoint();
  PolicyOptions options = Options(1, 1);
  options.scene_drawer = nullptr;
  const auto policy = mjp::Policy::Create(checkpoint, options);
  Observations observations(checkpoint->config, 1);
  observations.input.frames = {};
  observations.input.scenes = mjp::SceneBytes(observations.scenes);
  PolicyOutput output;
  try {
    policy->Infer(observations.input, output);
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find("no scene drawer"), std::string::npos);
  }
}

TEST(CpuPolicyCreateTest, RefusesWhatItCannotDo) {
  const auto checkpoint = mjp_test::TinyStateCheckpoint();
  PolicyOptions options = Options(1, 1);
  options.precision = mjp::Precision::kFp16;
  EXPECT_THROW(mjp::Policy::Create(checkpoint, options), mjp::Error);
  options = Options(1, 1);
  options.sampler.steps = 101;
  EXPECT_THROW(mjp::Policy::Create(checkpoint, options), mjp::Error);
  options = Options(0, 1);
  EXPECT_THROW(mjp::Policy::Create(checkpoint, options), mjp::Error);
}

TEST(CpuPolicyCreateTest, ResolvesOptions) {
  PolicyOptions options = Options(1, 1);
  options.sampler.steps = 0;
  const auto policy = mjp::Policy::Create(mjp_test::TinyStateCheckpoint(), options);
  EXPECT_EQ(policy->options().sampler.steps, 100);
  EXPECT_EQ(policy->options().backend, mjp::Backend::kCpu);
  EXPECT_EQ(policy->options().precision, mjp::Precision::kFp32);
  EXPECT_NE(policy->Description().find("CPU"), std::string::npos);
}

}  // namespace
