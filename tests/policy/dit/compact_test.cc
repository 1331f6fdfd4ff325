#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/flow_sampler.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/policy/dit/compact_dit.h"
#include "tests/policy/dit/dit_reference.h"
#include "tests/support/check_close.h"
#include "tests/support/error_of.h"
#include "tests/support/guarded_features.h"
#include "tests/support/temp_dir.h"

// dit_compact on the CPU: its condition against a U-Net's with the same encoder, its passes against
// their definition in double precision, and its files.

namespace {

using mjp::Checkpoint;
using mjp::DitConfig;
using mjp::DitObjective;
using mjp_test::CompactDit;
using mjp_test::CompactDitConfig;
using mjp_test::Matrix;
using mjp_test::RandomFloats;
using mjp_test::TempDir;
using testing::HasSubstr;

constexpr int kCount = 2;  // environments

// What a decision of kCount environments sees, and its noise.
struct Observation {
  std::vector<uint8_t> frames;
  std::vector<float> state, x_start;
  std::vector<mjp::NoiseKey> keys = {{1, 2}, {3, 4}};

  explicit Observation(const mjp::PolicyConfig& config) {
    for (const mjp::CameraFeature& camera : config.cameras) {
      const size_t size = size_t{3} * kCount * config.n_obs_steps * camera.height * camera.width;
      for (const float v : RandomFloats(size, 7))
        frames.push_back(static_cast<uint8_t>(127.5f * (v + 1)));
    }
    state = RandomFloats(size_t{1} * kCount * config.n_obs_steps * config.state_dim, 8);
    x_start = RandomFloats(size_t{1} * kCount * config.horizon * config.action_dim, 9);
  }

  mjp::PolicyInput Input() const {
    mjp::PolicyInput input;
    input.count = kCount;
    input.frames = frames, input.state = state, input.x_start = x_start, input.keys = keys;
    return input;
  }
};

mjp::PolicyTrace Decide(const std::shared_ptr<const Checkpoint>& checkpoint,
                        const mjp::PolicyInput& input, std::vector<float>* actions = nullptr) {
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.batch = kCount;
  options.threads = 2;
  mjp::PolicyOutput output;
  mjp::PolicyTrace trace;
  output.trace = &trace;
  mjp::Policy::Create(checkpoint, options)->Infer(input, output);
  if (actions != nullptr) *actions = output.actions;
  return trace;
}

TEST(CompactDitTest, SeesWhatAUnetWithTheSameEncoderSees) {
  for (const int cameras : {1, 2}) {
    const DitConfig config = CompactDitConfig(DitObjective::kFlowMatching, cameras);
    const auto dit = CompactDit(config);
    mjp::UnetPolicyConfig unet{config, {}, *config.encoder, {}, {}};
    unet.type = "diffusion_compact";
    unet.unet.down_dims = {16, 32};
    auto checkpoint = std::make_shared<Checkpoint>(
        *mjp::RandomCheckpoint(unet, mjp_test::CompactDitStats(config), 1));
    auto model = std::make_shared<mjp::UnetModel>(mjp::UnetOf(*checkpoint));
    model->encoders = mjp::DitOf(*dit).weights.encoders;
    checkpoint->network = model;
    const Observation observation(config);
    const auto cond = Decide(dit, observation.Input()).global_cond;
    EXPECT_EQ(cond.size(), size_t{1} * kCount * config.CondDim());
    EXPECT_EQ(cond, Decide(checkpoint, observation.Input()).global_cond);
  }
}

TEST(CompactDitTest, PassesAndStepsAgreeWithDouble) {
  const DitConfig config = CompactDitConfig(DitObjective::kFlowMatching);
  const auto checkpoint = CompactDit(config);
  const Observation observation(config);
  const mjp::PolicyTrace trace = Decide(checkpoint, observation.Input());
  const size_t size = size_t{1} * config.horizon * config.action_dim, cond = config.CondDim();
  const int steps = config.integration_steps;
  ASSERT_EQ(trace.x_steps.size(), kCount * size * steps);
  const auto part = [](const std::vector<float>& values, size_t from, size_t count) {
    return Matrix(values.begin() + static_cast<ptrdiff_t>(from),
                  values.begin() + static_cast<ptrdiff_t>(from + count));
  };
  for (int n = 0; n < kCount; ++n) {
    Matrix x = part(observation.x_start, n * size, size);
    for (int i = 0; i < steps; ++i) {
      const Matrix velocity =
          mjp_test::TrunkReference(mjp::DitOf(*checkpoint).weights, config, x, double(i) / steps,
                                   part(trace.global_cond, n * cond, cond));
      for (size_t k = 0; k < size; ++k) x[k] += velocity[k] / steps;
      const size_t at = (size_t{1} * i * kCount + n) * size;
      EXPECT_TRUE(mjp_test::CheckClose(part(trace.x_steps, at, size), x, 2e-5))
          << "environment " << n << ", step " << i;
    }
  }
}

TEST(CompactDitTest, FilesHoldTheWholePolicy) {
  for (const DitObjective objective : {DitObjective::kDiffusion, DitObjective::kFlowMatching}) {
    const TempDir dir;
    const auto made = CompactDit(CompactDitConfig(objective));
    mjp::WriteCheckpoint(dir / "policy", *made, mjp::WeightFormat::kF32);
    const auto loaded = mjp::LoadCheckpoint(dir / "policy");
    EXPECT_EQ(mjp::ConfigToJson(*loaded), mjp::ConfigToJson(*made));
    EXPECT_EQ(loaded->parameter_count, made->parameter_count);
    EXPECT_EQ(loaded->network->text_tokens(), 0);
    const Observation observation(made->config);
    std::vector<float> before, after;
    Decide(made, observation.Input(), &before);
    Decide(loaded, observation.Input(), &after);
    EXPECT_EQ(before, after);
  }
}

TEST(CompactDitTest, WhatItsConfigMustHave) {
  const TempDir dir;
  mjp::WriteCheckpoint(dir / "policy", *CompactDit(CompactDitConfig(DitObjective::kDiffusion)),
                       mjp::WeightFormat::kF32);
  const mjp::Json good = mjp::ConfigToJson(*CompactDit(CompactDitConfig(DitObjective::kDiffusion)));
  const auto error = [&](const std::function<void(mjp::Json&)>& change) {
    mjp::Json json = good;
    change(json);
    dir.Write("policy/config.json", json.dump());
    return mjp_test::ErrorOf([&] { mjp::LoadCheckpoint(dir / "policy"); });
  };
  EXPECT_EQ(error([](mjp::Json&) {}), "");
  EXPECT_THAT(error([](mjp::Json& j) { j.erase("compact_encoder"); }),
              HasSubstr("compact_encoder"));
  EXPECT_THAT(error([](mjp::Json& j) { j["compact_encoder"]["stem_kernel"] = 4; }),
              HasSubstr("stem_kernel"));
  EXPECT_THAT(error([](mjp::Json& j) { j["num_heads"] = 3; }), HasSubstr("num_heads"));
  EXPECT_THAT(
      error([](mjp::Json& j) {
        j["input_features"]["observation.environment_state"] = {{"type", "ENV"}, {"shape", {2}}};
      }),
      HasSubstr("observation.environment_state, which dit_compact does not read"));
  EXPECT_THAT(error([](mjp::Json& j) { j["compact_encoder"]["feature_dim"] = 25; }),
              HasSubstr("observation_encoder.rgb_encoder.out.weight"));
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  options.instruction = "push";
  EXPECT_THAT(mjp_test::ErrorOf([&] {
                mjp::Policy::Create(CompactDit(CompactDitConfig(DitObjective::kDiffusion)),
                                    options);
              }),
              HasSubstr("instruction"));
}

}  // namespace
