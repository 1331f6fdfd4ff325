#include "policy/scheduler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "policy/checkpoint/safetensors.h"
#include "tests/support/check_close.h"
#include "tests/support/shared_data.h"

namespace {

using mjp::SamplerKind;
using mjp_test::CheckClose;

std::vector<int> TimestepsOf(SamplerKind kind, int steps) {
  std::vector<int> timesteps;
  for (const mjp::DenoiseStep& s : mjp::MakeSchedule({}, kind, steps)) {
    timesteps.push_back(s.timestep);
  }
  return timesteps;
}

TEST(SchedulerTest, LeadingTimesteps) {
  EXPECT_EQ(TimestepsOf(SamplerKind::kDdim, 10),
            (std::vector<int>{90, 80, 70, 60, 50, 40, 30, 20, 10, 0}));
  EXPECT_EQ(TimestepsOf(SamplerKind::kDdpm, 16),
            (std::vector<int>{90, 84, 78, 72, 66, 60, 54, 48, 42, 36, 30, 24, 18, 12, 6, 0}));
  EXPECT_EQ(TimestepsOf(SamplerKind::kDdpm, 100).front(), 99);
  EXPECT_EQ(TimestepsOf(SamplerKind::kDdim, 1), std::vector<int>{0});
}

TEST(SchedulerTest, RefusesImpossibleStepCounts) {
  EXPECT_THROW(mjp::MakeSchedule({}, SamplerKind::kDdpm, 0), mjp::Error);
  EXPECT_THROW(mjp::MakeSchedule({}, SamplerKind::kDdpm, 101), mjp::Error);
}

// as torch.linspace and the library's cosine have it
TEST(SchedulerTest, OneTrainingStep) {
  mjp::SchedulerConfig config;
  config.train_steps = 1;
  EXPECT_EQ(mjp::Betas(config), std::vector<float>{0.999f});
  config.beta_schedule = mjp::BetaSchedule::kLinear;
  config.beta_start = 0.25f;
  EXPECT_EQ(mjp::Betas(config), std::vector<float>{0.25f});
}

// of a student that says x0 of pure noise
TEST(SchedulerTest, OneStepIsTheLastOneOfTraining) {
  mjp::SchedulerConfig config;
  for (const bool clip : {true, false}) {
    config.clip_sample = clip;
    const auto schedule = mjp::MakeSchedule(config, SamplerKind::kOneStep, 1);
    ASSERT_EQ(schedule.size(), 1u);
    EXPECT_EQ(schedule[0].timestep, 99);
    EXPECT_EQ(schedule[0].clip, clip ? config.clip_range : 0);
    EXPECT_EQ(schedule[0].prediction, mjp::Prediction::kSample);
  }
}

// values printed by the library, float32
TEST(SchedulerTest, PublishedConstants) {
  const std::vector<mjp::DenoiseStep> schedule = mjp::MakeSchedule({}, SamplerKind::kDdpm, 100);
  const mjp::DenoiseStep &s98 = schedule[1], &s50 = schedule[49], &s0 = schedule[99];
  EXPECT_FLOAT_EQ(s98.sqrt_a, 0.0155838765f);
  EXPECT_FLOAT_EQ(s98.x0_scale, 0.0233767591f);
  EXPECT_FLOAT_EQ(s98.x_scale, 0.499696434f);
  EXPECT_FLOAT_EQ(s98.sigma, 0.865674794f);
  EXPECT_FLOAT_EQ(s50.sqrt_1ma, 0.72231257f);
  EXPECT_FLOAT_EQ(s50.x0_scale, 0.0424906649f);
  EXPECT_EQ(s0.x0_scale, 1.0f);
  EXPECT_EQ(s0.x_scale, 0.0f);
  EXPECT_EQ(s0.sigma, 0.0f);
}

TEST(SchedulerTest, AllConstantsBitForBit) {
  SHARED_OR_SKIP(path, "scheduler/ddpm100_squaredcos_f32.csv");
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<float> betas = mjp::Betas({}), products = mjp::AlphasCumprod({});
  const std::vector<mjp::DenoiseStep> schedule = mjp::MakeSchedule({}, SamplerKind::kDdpm, 100);
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream values(line);
    int t = 0;
    float beta, product, sqrt_a, sqrt_1ma, x0_scale, x_scale, sigma;
    ASSERT_TRUE(values >> t >> beta >> product >> sqrt_a >> sqrt_1ma >> x0_scale >> x_scale >>
                sigma);
    const mjp::DenoiseStep& s = schedule[99 - t];
    EXPECT_EQ(betas[t], beta) << t;
    EXPECT_EQ(products[t], product) << t;
    EXPECT_EQ(s.sqrt_a, sqrt_a) << t;
    EXPECT_EQ(s.sqrt_1ma, sqrt_1ma) << t;
    EXPECT_EQ(s.x0_scale, x0_scale) << t;
    EXPECT_EQ(s.x_scale, x_scale) << t;
    EXPECT_EQ(s.sigma, sigma) << t;
  }
  EXPECT_EQ(rows, 100);
}

mjp::SchedulerConfig ConfigOf(const nlohmann::json& entry) {
  mjp::SchedulerConfig config;
  if (entry["beta_schedule"] == "linear") config.beta_schedule = mjp::BetaSchedule::kLinear;
  if (entry["prediction_type"] == "sample") config.prediction = mjp::PredictionType::kSample;
  if (entry["prediction_type"] == "v_prediction") {
    config.prediction = mjp::PredictionType::kVPrediction;
  }
  if (entry.value("variance_type", "") == "fixed_large") {
    config.variance = mjp::VarianceType::kFixedLarge;
  }
  config.clip_sample = entry["clip_sample"];
  config.clip_range = entry.value("clip_sample_range", 1.0f);
  return config;
}

// every configuration of the library that the checkpoints may ask for, one step at a time
TEST(SchedulerTest, EveryStepOfTheLibrary) {
  SHARED_OR_SKIP(description, "goldens/case_e_scheduler_steps.json");
  SHARED_OR_SKIP(path, "goldens/e_scheduler_steps.safetensors");
  const auto file = mjp::SafetensorsFile::Read(path);
  const auto cases = nlohmann::json::parse(std::ifstream(description));
  for (const auto& entry : cases["configs"]) {
    SCOPED_TRACE(entry.dump());
    const mjp::SchedulerConfig config = ConfigOf(entry);
    const std::string key = entry["key"];
    const bool ddim = entry["scheduler"] == "DDIM";
    const std::vector<mjp::DenoiseStep> schedule =
        mjp::MakeSchedule(config, ddim ? SamplerKind::kDdim : SamplerKind::kDdpm,
                          entry["num_inference_steps"].get<int>());
    const auto table = [&](const std::string& name) {
      return file.Floats("table/" + entry["beta_schedule"].get<std::string>() + "/" + name).data;
    };
    EXPECT_EQ(mjp::Betas(config), table("betas"));
    EXPECT_EQ(mjp::AlphasCumprod(config), table("alphas_cumprod"));
    const std::vector<int64_t> t = file.Integers(key + "/t");
    const std::vector<float> output = file.Floats(key + "/model_output").data;
    const std::vector<float> sample = file.Floats(key + "/sample").data;
    const std::vector<float> expected = file.Floats(key + "/prev_sample").data;
    const std::vector<float> noise =
        ddim ? std::vector<float>(sample.size()) : file.Floats(key + "/noise").data;
    const size_t row = sample.size() / t.size();
    std::vector<float> actual;
    double largest = 1;
    for (size_t i = 0; i < sample.size(); ++i) {
      const auto step = std::find_if(schedule.begin(), schedule.end(),
                                     [&](const auto& s) { return s.timestep == t[i / row]; });
      ASSERT_NE(step, schedule.end());
      actual.push_back(mjp::Denoise(*step, sample[i], output[i], noise[i]));
      largest = std::max(largest, std::abs(double{expected[i]}));
    }
    EXPECT_TRUE(CheckClose(actual, expected, 2e-6 * largest));
  }
}

}  // namespace
