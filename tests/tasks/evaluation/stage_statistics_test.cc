#include "tasks/evaluation/stage_statistics.h"

#include <gtest/gtest.h>

#include "policy/timing.h"

namespace {

// A decision that begins at `begin` and takes these milliseconds to encode and to denoise.
mjp::StageTimes Decision(double begin, double encode, double denoise) {
  mjp::StageTimes times;
  const double middle = begin + 1e-3 * encode;
  times[mjp::Stage::kEncode] = {begin, middle};
  times[mjp::Stage::kDenoise] = {middle, middle + 1e-3 * denoise};
  return times;
}

TEST(StageStatistics, TheSlowestDecisionIsKnownByItsLongestStage) {
  mjp::app::StageStatistics statistics;
  statistics.Add({});
  statistics.Add(Decision(1, 50, 70));  // the first, which is left out
  EXPECT_EQ(statistics.slowest().milliseconds, 0);
  statistics.Add(Decision(2, 1, 3));
  statistics.Add(Decision(3, 9, 4));
  statistics.Add(Decision(4, 2, 8));
  EXPECT_NEAR(statistics.slowest().milliseconds, 13, 1e-9);
  EXPECT_NEAR(statistics.slowest().stage_milliseconds, 9, 1e-9);
  EXPECT_EQ(statistics.slowest().stage, "encode");
  EXPECT_NEAR(statistics.slowest().at, 3.013, 1e-9);
  EXPECT_EQ(statistics.Summary().at("decision").n, 4);
}

}  // namespace
