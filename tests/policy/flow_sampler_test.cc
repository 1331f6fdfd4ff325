#include "policy/flow_sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/check_close.h"

namespace {

using mjp::SamplerKind;

// dx/dt = a(t) x + t of each environment, whose times are those of FlowTimes.
class LinearFlow : public mjp::StepNetwork {
 public:
  // `one_each`: a pass has one row of each environment.
  explicit LinearFlow(std::vector<double> times, bool one_each = true)
      : times_(std::move(times)), one_each_(one_each) {}

  static double Velocity(double x, double t) { return std::cos(3 * t) * x + t; }

  void Evaluate(const float* x, const int* step, const int* environment, int rows,
                float* output) override {
    for (int r = 0; r < rows; ++r) {
      if (one_each_) {
        EXPECT_EQ(environment[r], r);
      }
      for (int i = 0; i < 2; ++i) {
        output[2 * r + i] = static_cast<float>(Velocity(x[2 * r + i], times_.at(step[r])));
      }
    }
  }

 private:
  std::vector<double> times_;
  bool one_each_;
};

// x at time 1 by very many small steps in double precision.
double Solution(double x) {
  constexpr int kSteps = 200000;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) / kSteps;
    const double half = x + LinearFlow::Velocity(x, t - 0.5 / kSteps) * 0.5 / kSteps;
    x += LinearFlow::Velocity(half, t) / kSteps;
  }
  return x;
}

std::vector<float> Chunk(SamplerKind kind, int steps, int environments, mjp::PolicyTrace* trace) {
  LinearFlow flow(mjp::FlowTimes(kind, steps));
  const auto sampler = mjp::MakeFlowSampler(kind, steps, 3, 2);
  EXPECT_EQ(sampler->MaxRows(), 3);
  std::vector<float> x = {0.3f, -1.2f, 2.0f, 0.0f, 0.7f, -0.5f};
  x.resize(size_t{2} * environments);
  EXPECT_EQ(sampler->Run(flow, {environments, x.data(), nullptr, trace}),
            kind == SamplerKind::kEuler ? steps : 4 * steps);
  return x;
}

TEST(FlowSamplerTest, ConvergesWithItsOrder) {
  const double exact = Solution(0.3f);
  EXPECT_NEAR(Chunk(SamplerKind::kRk4, 20, 3, nullptr)[0], exact, 2e-6);
  const auto error = [&](SamplerKind kind, int steps) {
    return std::abs(Chunk(kind, steps, 3, nullptr)[0] - exact);
  };
  EXPECT_NEAR(error(SamplerKind::kEuler, 20) / error(SamplerKind::kEuler, 40), 2, 0.2);
  EXPECT_NEAR(error(SamplerKind::kRk4, 2) / error(SamplerKind::kRk4, 4), 16, 8);
}

// Windows of steps come to Euler's own result, in fewer passes; with no tolerance to its bits.
TEST(FlowSamplerTest, WindowsAgreeWithTheChain) {
  constexpr int kSteps = 100, kWindow = 16;
  const std::vector<float> chain = Chunk(SamplerKind::kEuler, kSteps, 3, nullptr);
  for (const float tolerance : {1e-3f, 0.0f}) {
    LinearFlow flow(mjp::FlowTimes(SamplerKind::kEuler, kSteps), false);
    const auto sampler = mjp::MakeParallelSampler(mjp::FlowSteps(kSteps), 3, 2, kWindow, tolerance);
    std::vector<float> x = {0.3f, -1.2f, 2.0f, 0.0f, 0.7f, -0.5f};
    const int passes = sampler->Run(flow, {3, x.data(), nullptr, nullptr});
    if (tolerance == 0) {
      EXPECT_EQ(x, chain);
    } else {
      EXPECT_LT(passes, kSteps / 3);
      EXPECT_TRUE(mjp_test::CheckClose(x, chain, 5 * tolerance));
    }
  }
}

TEST(FlowSamplerTest, AnEnvironmentDoesNotDependOnTheOthers) {
  for (const SamplerKind kind : {SamplerKind::kEuler, SamplerKind::kRk4}) {
    std::vector<float> all = Chunk(kind, 10, 3, nullptr);
    all.resize(2);
    EXPECT_EQ(all, Chunk(kind, 10, 1, nullptr));
  }
}

TEST(FlowSamplerTest, TracesEveryPassAndStep) {
  mjp::PolicyTrace trace;
  const std::vector<float> x = Chunk(SamplerKind::kRk4, 5, 2, &trace);
  EXPECT_EQ(trace.eps_steps.size(), 4u * 5 * 4);
  ASSERT_EQ(trace.x_steps.size(), 5u * 4);
  EXPECT_EQ(std::vector<float>(trace.x_steps.end() - 4, trace.x_steps.end()), x);
}

TEST(FlowTimesTest, RunFromZeroAndNeverEvaluateOne) {
  const std::vector<double> euler = mjp::FlowTimes(SamplerKind::kEuler, 10);
  ASSERT_EQ(euler.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(euler[i], 0.1 * i, 1e-7);
  const std::vector<double> rk4 = mjp::FlowTimes(SamplerKind::kRk4, 2);
  EXPECT_TRUE(mjp_test::CheckClose(rk4, std::vector<double>{0, 0.25, 0.5, 0.5, 0.75, 1}, 1e-7));
}

}  // namespace
