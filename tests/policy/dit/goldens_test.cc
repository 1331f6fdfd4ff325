#include <gtest/gtest.h>

#include "tests/policy/dit/dit_checks.h"

// multi_task_dit against numbers that the original library computed.

namespace {

class DitNetworkTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SHARED_OR_SKIP(goldens, "goldens_act_dit/README.md"); }
};

TEST_P(DitNetworkTest, VisionTower) {
  mjp_test::CheckVision(*mjp_test::DitCheckpoint(GetParam()), GetParam(), 7);
}
TEST_P(DitNetworkTest, TextTower) {
  mjp_test::CheckText(*mjp_test::DitCheckpoint(GetParam()), GetParam(), 4);
}
TEST_P(DitNetworkTest, PassesOfTheDenoiser) {
  mjp_test::CheckPasses(*mjp_test::DitCheckpoint(GetParam()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, DitNetworkTest,
                         testing::Values("dit_compact", "dit_absolute", "dit_tiny"),
                         [](const auto& info) { return std::string(info.param); });

class DitChainTest : public DitNetworkTest {};

TEST_P(DitChainTest, FromThePictures) {
  // DDIM divides by the small noise level of its last steps
  const bool sensitive = std::string(GetParam()) == "dit_absolute_ddim20";
  mjp_test::CheckDitChain(GetParam(), true, sensitive ? 3 : 1);
}

INSTANTIATE_TEST_SUITE_P(All, DitChainTest,
                         testing::Values("dit_compact_ddpm100", "dit_compact_ddpm10",
                                         "dit_compact_ddim10", "dit_compact_euler100",
                                         "dit_compact_rk4_10", "dit_absolute_ddim20",
                                         "dit_absolute_rk4_5", "dit_tiny_euler10"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
