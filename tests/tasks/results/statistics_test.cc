#include "tasks/results/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/results/report.h"

namespace mjp::app {
namespace {

// values of the Wilson interval as published and as statsmodels' proportion_confint prints them
TEST(Wilson95, AgreesWithPublishedValues) {
  const Interval half = Wilson95(5, 10);
  EXPECT_NEAR(half.low, 0.236593, 1e-6);
  EXPECT_NEAR(half.high, 0.763407, 1e-6);
  const Interval many = Wilson95(492, 500);
  EXPECT_NEAR(many.low, 0.968749, 1e-6);
  EXPECT_NEAR(many.high, 0.991871, 1e-6);
}

TEST(Wilson95, EndsAreExact) {
  EXPECT_EQ(Wilson95(0, 20).low, 0.0);
  EXPECT_NEAR(Wilson95(0, 20).high, 0.161125, 1e-6);
  EXPECT_EQ(Wilson95(20, 20).high, 1.0);
  EXPECT_NEAR(Wilson95(1, 1).low, 0.206549, 1e-6);
  EXPECT_NEAR(Wilson95(0, 1).high, 0.793451, 1e-6);
  EXPECT_EQ(Wilson95(0, 0).low, 0.0);
  EXPECT_EQ(Wilson95(0, 0).high, 1.0);
}

TEST(Wilson95, IsOfNoMoreSuccessesThanEpisodes) {
  EXPECT_THROW(Wilson95(900, 256), mjp::Error);
  EXPECT_THROW(Wilson95(-1, 256), mjp::Error);
}

TEST(ClearlyWorse, ComparesSharesAndNotCounts) {
  EXPECT_FALSE(ClearlyWorse({256, 256}, {900, 1024}));
  EXPECT_TRUE(ClearlyWorse({300, 1024}, {250, 256}));
  EXPECT_FALSE(ClearlyWorse({240, 256}, {245, 256}));  // chance may be why
  EXPECT_FALSE(ClearlyWorse({0, 256}, {}));            // than nothing
}

TEST(Quantile, InterpolatesLinearly) {
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.0), 1.0);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 1.0), 4.0);
  EXPECT_NEAR(Quantile({4, 1, 3, 2}, 0.99), 3.97, 1e-12);
  EXPECT_EQ(Quantile({}, 0.5), 0.0);
  EXPECT_EQ(Mean({1, 2, 6}), 3.0);
  EXPECT_EQ(Mean({}), 0.0);
}

TEST(FiguresText, NamesStepsToSuccessWhereOneSucceeded) {
  Figures figures;
  figures.episodes = 2;
  EXPECT_THAT(FiguresText(figures, "coverage"), testing::Not(testing::HasSubstr("steps")));
  figures.successes = 1, figures.median_success_step = 40;
  EXPECT_THAT(FiguresText(figures, "coverage"), testing::HasSubstr("steps               40 "));
}

}  // namespace
}  // namespace mjp::app
