#include "policy/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/shared/picard_step.h"
#include "policy/scheduler.h"
#include "tests/support/check_close.h"

namespace {

using mjp::DenoiseStep;
using mjp::PredictionType;
using mjp::SamplerKind;

constexpr int kElements = 32;

// The exact network of data made of two points, +-0.6 with another sign pattern per environment: a
// smooth function of x and the noise level, like a trained network.
class TwoPoints : public mjp::StepNetwork {
 public:
  explicit TwoPoints(const std::vector<DenoiseStep>& schedule) : schedule_(schedule) {}

  void Evaluate(const float* x, const int* step, const int* environment, int rows,
                float* output) override {
    largest_rows = std::max(largest_rows, rows);
    for (int r = 0; r < rows; ++r, x += kElements, output += kElements) {
      const DenoiseStep& s = schedule_[step[r]];
      double dot = 0;
      for (int i = 0; i < kElements; ++i) dot += Point(environment[r], i) * x[i];
      const double variance = std::max<double>(s.sqrt_1ma * s.sqrt_1ma, 1e-6);
      const double side = std::tanh(dot * s.sqrt_a / variance);
      for (int i = 0; i < kElements; ++i) {
        const double x0 = side * Point(environment[r], i);
        const double eps = (x[i] - s.sqrt_a * x0) / std::sqrt(variance);
        switch (s.prediction) {
          case mjp::Prediction::kEpsilon:
            output[i] = static_cast<float>(eps);
            break;
          case mjp::Prediction::kSample:
            output[i] = static_cast<float>(x0);
            break;
          case mjp::Prediction::kV:
            output[i] = static_cast<float>(s.sqrt_a * eps - s.sqrt_1ma * x0);
            break;
        }
      }
    }
  }

  int largest_rows = 0;

 private:
  static double Point(int environment, int i) {
    return 0.6 * std::sin(1.0 + i * (environment + 1));
  }
  std::vector<DenoiseStep> schedule_;
};

// A network no window can follow: its output jumps with the least change of x.
class Erratic : public mjp::StepNetwork {
 public:
  explicit Erratic(double jump = 1e4) : jump_(jump) {}

  void Evaluate(const float* x, const int*, const int*, int rows, float* output) override {
    all_rows += rows;
    for (int i = 0; i < rows * kElements; ++i) {
      output[i] = static_cast<float>(std::sin(jump_ * double{x[i]}));
    }
  }

  int all_rows = 0;

 private:
  double jump_;
};

class TapeNoise : public mjp::NoiseSource {
 public:
  explicit TapeNoise(int environments) : size_(environments * kElements) {}
  void Fill(int step, float* noise) const override {
    for (int i = 0; i < size_; ++i) {
      std::mt19937 generator(static_cast<uint32_t>(step * 1000 + i));
      noise[i] = std::normal_distribution<float>()(generator);
    }
  }

 private:
  int size_;
};

std::vector<float> Start(int environments) {
  std::vector<float> x(environments * kElements);
  TapeNoise(environments).Fill(100000, x.data());
  return x;
}

struct Outcome {
  std::vector<float> x;
  int passes = 0;
  mjp::PolicyTrace trace;
};

Outcome RunChain(mjp::Sampler& sampler, mjp::StepNetwork& network, int environments) {
  Outcome outcome{Start(environments), 0, {}};
  const TapeNoise noise(environments);
  outcome.passes = sampler.Run(network, {environments, outcome.x.data(), &noise, &outcome.trace});
  return outcome;
}

using Kind = std::tuple<SamplerKind, PredictionType, bool>;
class ParallelSamplerTest : public testing::TestWithParam<Kind> {
 protected:
  std::vector<DenoiseStep> Schedule(int steps) const {
    mjp::SchedulerConfig config;
    config.prediction = std::get<1>(GetParam());
    config.clip_sample = std::get<2>(GetParam());
    return mjp::MakeSchedule(config, std::get<0>(GetParam()), steps);
  }
};

TEST_P(ParallelSamplerTest, ReachesTheSequentialChainInFewerPasses) {
  const std::vector<DenoiseStep> schedule = Schedule(100);
  TwoPoints network(schedule);
  for (const int environments : {1, 3}) {
    const auto sequential = mjp::MakeSequentialSampler(schedule, environments, kElements);
    const auto parallel = mjp::MakeParallelSampler(schedule, environments, kElements, 16, 0.01f);
    const Outcome a = RunChain(*sequential, network, environments);
    network.largest_rows = 0;
    const Outcome b = RunChain(*parallel, network, environments);
    EXPECT_EQ(a.passes, 100);
    EXPECT_LT(b.passes, 40);
    EXPECT_LE(network.largest_rows, parallel->MaxRows());
    EXPECT_TRUE(mjp_test::CheckClose(b.x, a.x, 3e-3));
    EXPECT_TRUE(mjp_test::CheckClose(b.trace.x_steps, a.trace.x_steps, 0.1));
    EXPECT_EQ(b.trace.eps_steps.size(), a.trace.eps_steps.size());
  }
}

TEST_P(ParallelSamplerTest, NoToleranceMeansTheSameNumbers) {
  const std::vector<DenoiseStep> schedule = Schedule(20);
  TwoPoints network(schedule);
  const auto sequential = mjp::MakeSequentialSampler(schedule, 2, kElements);
  const auto parallel = mjp::MakeParallelSampler(schedule, 2, kElements, 8, 1e-7f);
  const Outcome a = RunChain(*sequential, network, 2), b = RunChain(*parallel, network, 2);
  EXPECT_LE(b.passes, 20);
  EXPECT_TRUE(mjp_test::CheckClose(b.x, a.x, 2e-5));
}

TEST_P(ParallelSamplerTest, FallsBackWhereTheWindowDoesNotConverge) {
  const std::vector<DenoiseStep> schedule = Schedule(100);
  Erratic network;
  const auto sequential = mjp::MakeSequentialSampler(schedule, 1, kElements);
  const auto parallel = mjp::MakeParallelSampler(schedule, 1, kElements, 16, 1e-7f);
  const Outcome a = RunChain(*sequential, network, 1), b = RunChain(*parallel, network, 1);
  EXPECT_LE(b.passes, 100);
  EXPECT_EQ(b.x, a.x);
  // sequential after five passes of the window
  EXPECT_LE(network.all_rows, 100 + 100 + 5 * 15);
}

TEST_P(ParallelSamplerTest, EndsWhereTheNetworkSaysNoNumber) {
  const std::vector<DenoiseStep> schedule = Schedule(100);
  Erratic network(std::nan(""));
  const auto parallel = mjp::MakeParallelSampler(schedule, 1, kElements, 16, 0.01f);
  const Outcome outcome = RunChain(*parallel, network, 1);
  EXPECT_LE(outcome.passes, 100);
  for (const float x : outcome.x) EXPECT_TRUE(std::isnan(x));
}

// what a trace says of the windows leads through the chain as the sampler went
TEST_P(ParallelSamplerTest, ResidualsTellWhichStepsBecameFinal) {
  constexpr int kSteps = 100, kWindow = 16, kEnvironments = 2;
  const std::vector<DenoiseStep> schedule = Schedule(kSteps);
  TwoPoints network(schedule);
  const auto sampler = mjp::MakeParallelSampler(schedule, kEnvironments, kElements, kWindow, 0.01f);
  for (int run = 0; run < 2; ++run) {  // the second has nothing of the first
    const Outcome outcome = RunChain(*sampler, network, kEnvironments);
    const mjp::Tensor& residuals = outcome.trace.tensors.at("residuals");
    ASSERT_EQ(residuals.shape, (std::vector<int64_t>{outcome.passes, kEnvironments, kSteps}));
    for (int n = 0; n < kEnvironments; ++n) {
      int begin = 0;
      for (int pass = 0; pass < outcome.passes; ++pass) {
        const float* share = &residuals.data[(pass * kEnvironments + n) * kSteps];
        const int end = std::min(begin + kWindow, kSteps);
        for (int k = 0; k < kSteps; ++k) {
          EXPECT_EQ(share[k] >= 0, k >= begin && k < end && begin < kSteps) << pass << ", " << k;
        }
        if (begin < kSteps) {
          EXPECT_EQ(share[begin], 0);
        }
        while (begin < end && share[begin] <= 1) ++begin;
      }
      EXPECT_EQ(begin, kSteps);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ParallelSamplerTest,
                         testing::Combine(testing::Values(SamplerKind::kDdpm, SamplerKind::kDdim),
                                          testing::Values(PredictionType::kEpsilon,
                                                          PredictionType::kSample,
                                                          PredictionType::kVPrediction),
                                          testing::Bool()));

TEST(ParallelSamplerTest, NeighboursDoNotChangeABit) {
  const std::vector<DenoiseStep> schedule = mjp::MakeSchedule({}, SamplerKind::kDdim, 50);
  TwoPoints network(schedule);
  const auto one = mjp::MakeParallelSampler(schedule, 1, kElements, 8, 0.01f);
  const auto many = mjp::MakeParallelSampler(schedule, 4, kElements, 8, 0.01f);
  const Outcome a = RunChain(*one, network, 1), b = RunChain(*many, network, 4);
  EXPECT_EQ(a.x, std::vector<float>(b.x.begin(), b.x.begin() + kElements));
}

// Actions that vary by a third of the range, whose network is known: a chain is linear then, so
// one that begins at a step with x = limit and no noise ends with the error that is left of it.
TEST(ParallelSamplerTest, AStepToleratesWhatLeavesAsLittleOfTheResult) {
  constexpr float kVariance = 0.1f, kTolerance = 0.01f;
  const auto sample_of = [](const DenoiseStep& s, float x) {
    const float share = kVariance * s.sqrt_a;
    return share * x / (share * s.sqrt_a + s.sqrt_1ma * s.sqrt_1ma);
  };
  for (const SamplerKind kind : {SamplerKind::kDdpm, SamplerKind::kDdim}) {
    mjp::SchedulerConfig config;
    config.prediction = PredictionType::kSample;
    const std::vector<DenoiseStep> schedule = mjp::MakeSchedule(config, kind, 100);
    for (size_t first = 0; first < schedule.size(); ++first) {
      const DenoiseStep& s = schedule[first];
      const float slope = sample_of(s, s.sqrt_a);
      float x = mjp::PicardLimit(s, kTolerance);
      if (mjp::PicardScalesTolerance(s)) x *= mjp::PicardToleranceScale(s, 1, slope * slope);
      for (size_t k = first; k < schedule.size(); ++k)
        x = mjp::Denoise(schedule[k], x, sample_of(schedule[k], x), 0);
      EXPECT_LE(x, 0.35f * kTolerance) << first;
      if (first < 5) continue;
      EXPECT_GE(x, 0.04f * kTolerance) << first;  // less would cost passes
    }
  }
}

TEST(ParallelSamplerTest, ANetworkThatFollowsItsInputIsTrustedLess) {
  for (const DenoiseStep& s : mjp::MakeSchedule({}, SamplerKind::kDdpm, 100)) {
    if (!mjp::PicardScalesTolerance(s)) continue;
    EXPECT_EQ(mjp::PicardToleranceScale(s, 1, 1), 1);
    EXPECT_EQ(mjp::PicardToleranceScale(s, 0, 0), 1);
    EXPECT_EQ(mjp::PicardToleranceScale(s, std::nanf(""), 1), 1);
  }
}

}  // namespace
