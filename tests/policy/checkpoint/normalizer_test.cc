#include "policy/checkpoint/normalizer.h"

#include <gtest/gtest.h>

#include <vector>

namespace mjp_test {
namespace {

using mjp::FeatureStats;
using mjp::Normalization;

TEST(Normalizer, MapsRangesToPlusMinusOne) {
  for (const auto mode :
       {Normalization::kMinMax, Normalization::kQuantiles, Normalization::kQuantile10}) {
    const FeatureStats stats{mode, {12.0f, 25.0f}, {511.0f, 511.0f}};
    EXPECT_EQ(mjp::Normalize(stats, 0, 12.0f), -1.0f);
    EXPECT_EQ(mjp::Normalize(stats, 0, 511.0f), 1.0f);
    EXPECT_EQ(mjp::Normalize(stats, 1, 268.0f), 0.0f);
    EXPECT_GT(mjp::Normalize(stats, 1, 600.0f), 1.0f);  // never clipped
    EXPECT_EQ(mjp::Unnormalize(stats, 0, -1.0f), 12.0f);
    EXPECT_EQ(mjp::Unnormalize(stats, 1, 1.0f), 511.0f);
    EXPECT_EQ(mjp::Unnormalize(stats, 1, 0.0f), 268.0f);
  }
}

TEST(Normalizer, CentresByMeanAndDeviation) {
  const FeatureStats stats{Normalization::kMeanStd, {0.5f}, {0.25f}};
  EXPECT_EQ(mjp::Normalize(stats, 0, 1.0f), 2.0f);
  EXPECT_EQ(mjp::Unnormalize(stats, 0, 2.0f), 1.0f);
}

TEST(Normalizer, LeavesIdentityAlone) {
  const FeatureStats stats;
  EXPECT_EQ(mjp::Normalize(stats, 3, 0.7f), 0.7f);
  EXPECT_EQ(mjp::Unnormalize(stats, 3, 0.7f), 0.7f);
}

TEST(Normalizer, WorksOnRows) {
  const FeatureStats stats{Normalization::kMinMax, {0.0f, 100.0f}, {10.0f, 300.0f}};
  std::vector<float> rows = {0, 100, 5, 200, 10, 300};
  mjp::Normalize(stats, 2, rows);
  EXPECT_EQ(rows, (std::vector<float>{-1, -1, 0, 0, 1, 1}));
  mjp::Unnormalize(stats, 2, rows);
  EXPECT_EQ(rows, (std::vector<float>{0, 100, 5, 200, 10, 300}));
}

}  // namespace
}  // namespace mjp_test
