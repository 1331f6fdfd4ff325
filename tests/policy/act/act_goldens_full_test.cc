#include <gtest/gtest.h>

#include "tests/policy/act/act_golden_checks.h"
#include "tests/support/goldens/act_cases.h"

// LeRobot's defaults, at full size.

namespace mjp_test {
namespace {

TEST(ActGoldens, LeRobotsDefaults) {
  SHARED_OR_SKIP(json, "goldens_act_dit/case_act_default.json");
  const auto checkpoint = StoredActCheckpoint(json);
  EXPECT_EQ(checkpoint->parameter_count, 34232142);
  CheckCase("act_default", checkpoint);
}

}  // namespace
}  // namespace mjp_test
