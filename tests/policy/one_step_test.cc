// A student that was distilled to one pass: its checkpoint, its chunk, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/checkpoint_writer.h"
#include "policy/checkpoint/config_parser.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/support/goldens/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace {

using mjp::SamplerKind;
using testing::HasSubstr;

// The tiny state policy, predicting the sample; a student where `steps` is 1.
std::shared_ptr<const mjp::Checkpoint> SamplePolicy(SamplerKind kind, int steps) {
  auto checkpoint = std::make_shared<mjp::Checkpoint>(*mjp_test::TinyStateCheckpoint());
  const auto network = std::make_shared<mjp::UnetModel>(mjp::UnetOf(*checkpoint));
  network->config.scheduler.kind = kind;
  network->config.scheduler.prediction = mjp::PredictionType::kSample;
  network->config.scheduler.inference_steps = steps;
  checkpoint->network = network;
  return checkpoint;
}

std::shared_ptr<const mjp::Checkpoint> Student() { return SamplePolicy(SamplerKind::kOneStep, 1); }

mjp::PolicyOutput Infer(const std::shared_ptr<const mjp::Checkpoint>& checkpoint,
                        mjp::PolicyTrace& trace) {
  const mjp::PolicyConfig& config = checkpoint->config;
  mjp::PolicyOptions options;
  options.backend = mjp::Backend::kCpu;
  const auto policy = mjp::Policy::Create(checkpoint, options);
  const std::vector<float> state(config.n_obs_steps * config.state_dim, 200.0f);
  const std::vector<float> environment(config.n_obs_steps * config.environment_dim, 150.0f);
  const std::vector<mjp::NoiseKey> keys = {{7, 3}};
  mjp::PolicyInput input;
  input.count = 1;
  input.state = state, input.environment = environment, input.keys = keys;
  mjp::PolicyOutput output;
  output.trace = &trace;
  policy->Infer(input, output);
  return output;
}

TEST(OneStepTest, TheChunkIsWhatTheNetworkSaysOfTheNoise) {
  mjp::PolicyTrace student, chain;
  const mjp::PolicyOutput output = Infer(Student(), student);
  Infer(SamplePolicy(SamplerKind::kDdpm, 100), chain);
  EXPECT_EQ(output.times.passes, 1);
  EXPECT_EQ(student.timesteps, std::vector<int>{99});
  ASSERT_EQ(chain.timesteps[0], 99);
  // the first pass of a chain of the same network sees the same noise at the same time
  const std::vector<float>& made = student.eps_steps;
  ASSERT_FALSE(made.empty());
  ASSERT_LE(made.size(), chain.eps_steps.size());
  EXPECT_TRUE(std::equal(made.begin(), made.end(), chain.eps_steps.begin()));
  std::vector<float> expected;
  for (const float value : made) expected.push_back(std::clamp(value, -1.0f, 1.0f));
  mjp::Unnormalize(Student()->stats.action, Student()->config.action_dim, expected);
  EXPECT_EQ(output.actions, expected);
}

TEST(OneStepTest, ItsCheckpointLoadsAsWritten) {
  const mjp_test::TempDir folder;
  mjp::WriteCheckpoint(folder / "student", *Student(), mjp::WeightFormat::kF32);
  const auto loaded = mjp::LoadCheckpoint(folder / "student");
  EXPECT_EQ(mjp::ConfigToJson(*loaded), mjp::ConfigToJson(*Student()));
  EXPECT_EQ(mjp::ConfigToJson(*loaded)["sampler"], "onestep");
  mjp::PolicyTrace trace;
  EXPECT_EQ(Infer(loaded, trace).actions, Infer(Student(), trace).actions);
}

TEST(OneStepTest, RefusesEveryOtherSampler) {
  const auto refusal = [](const mjp::SamplerOptions& sampler,
                          const std::shared_ptr<const mjp::Checkpoint>& checkpoint) {
    try {
      mjp::ResolveSampler(sampler, *checkpoint);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({SamplerKind::kDdim}, Student()), HasSubstr("knows onestep"));
  EXPECT_THAT(refusal({SamplerKind::kAuto, 2}, Student()), HasSubstr("sampler steps = 2"));
  EXPECT_THAT(refusal({SamplerKind::kAuto, 0, 8}, Student()), HasSubstr("parallel window = 8"));
  EXPECT_THAT(refusal({SamplerKind::kOneStep}, mjp_test::TinyStateCheckpoint()),
              HasSubstr("knows ddpm, ddim"));
  EXPECT_EQ(refusal({SamplerKind::kOneStep, 1}, Student()), "");
}

TEST(OneStepTest, ItsConfigNamesTheKeyThatDoesNotFit) {
  const mjp::Json good = mjp::ConfigToJson(*Student());
  const std::pair<const char*, mjp::Json> bad[] = {
      {"sampler", "twostep"}, {"prediction_type", "epsilon"}, {"num_inference_steps", 2}};
  for (const auto& [key, value] : bad) {
    mjp::Json json = good;
    json[key] = value;
    try {
      mjp::ParseConfig(json, "config.json");
      ADD_FAILURE() << key << " was taken";
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
      EXPECT_THAT(error.what(), HasSubstr(key));
    }
  }
}

}  // namespace
