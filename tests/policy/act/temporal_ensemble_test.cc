#include "policy/act/temporal_ensemble.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/check_close.h"

namespace mjp_test {
namespace {

constexpr int kHorizon = 7, kActions = 2, kSteps = 25;

// row j of the chunk that is made at `step`
float Said(int step, int j, int c) { return std::sin(0.7f * step + 1.3f * j + c); }

std::vector<float> ChunkOf(int step) {
  std::vector<float> chunk;
  for (int j = 0; j < kHorizon; ++j)
    for (int c = 0; c < kActions; ++c) chunk.push_back(Said(step, j, c));
  return chunk;
}

// the mean of what all chunks say of `time`, from the definition: the oldest has weight 1
double MeanOf(double m, int step, int time, int c) {
  double sum = 0, weights = 0;
  int i = 0;
  for (int made = std::max(0, time - kHorizon + 1); made <= step; ++made, ++i) {
    sum += std::exp(-m * i) * Said(made, time - made, c);
    weights += std::exp(-m * i);
  }
  return sum / weights;
}

class TemporalEnsembleTest : public testing::TestWithParam<double> {};

TEST_P(TemporalEnsembleTest, IsTheWeightedMeanOfAllChunks) {
  const mjp::TemporalEnsemble ensemble(GetParam(), kHorizon, kActions);
  std::vector<float> before;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> chunk = ChunkOf(step);
    ensemble.Fold(before, step, chunk);
    std::vector<double> expected;
    for (int j = 0; j < kHorizon; ++j)
      for (int c = 0; c < kActions; ++c) expected.push_back(MeanOf(GetParam(), step, step + j, c));
    EXPECT_TRUE(CheckClose(chunk, expected, 2e-6)) << "step " << step;
    before = chunk;
  }
}

TEST_P(TemporalEnsembleTest, SharesAreLeRobotsWeights) {
  const mjp::TemporalEnsemble ensemble(GetParam(), kHorizon, kActions);
  for (int chunks = 1; chunks <= kHorizon; ++chunks) {
    const std::vector<float> shares = ensemble.Shares(chunks);
    double sum = 0;
    for (int i = 0; i < chunks; ++i) sum += std::exp(-GetParam() * i);
    ASSERT_EQ(shares.size(), static_cast<size_t>(chunks));
    for (int i = 0; i < chunks; ++i) EXPECT_NEAR(shares[i], std::exp(-GetParam() * i) / sum, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Coefficients, TemporalEnsembleTest, testing::Values(0.0, 0.01, 1.0, -0.3));

TEST(TemporalEnsemble, OnlyOfAPolicyThatAsksForIt) {
  mjp::PolicyConfig config;
  EXPECT_FALSE(mjp::EnsembleOf(config));
  config.temporal_ensemble = 0.01;
  EXPECT_TRUE(mjp::EnsembleOf(config));
}

}  // namespace
}  // namespace mjp_test
