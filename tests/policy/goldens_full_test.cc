#include <gtest/gtest.h>

#include "tests/policy/golden_checks.h"

// LeRobot's own network with 263 M parameters: a gigabyte of weights, so a slow test.

namespace {

const mjp_test::GoldenRun& kRun = *std::prev(std::end(mjp_test::kGoldenRuns));

TEST(FullGoldens, ChainAgreesAtEveryStep) {
  SHARED_OR_SKIP(path, "goldens/a_lerobot_full.safetensors");
  mjp_test::CheckChain(kRun);
}

TEST(FullGoldens, EveryStepAloneAgrees) {
  SHARED_OR_SKIP(path, "goldens/a_lerobot_full.safetensors");
  mjp_test::CheckStepsAlone(kRun);
}

}  // namespace
