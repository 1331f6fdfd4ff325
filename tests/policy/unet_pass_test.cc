// Passes of the CPU's U-Net against their definition in double precision.

#include "tests/support/gpu/unet_pass_check.h"

namespace {

class UnetPass : public testing::TestWithParam<mjp_test::UnetShape> {};

TEST_P(UnetPass, AgreesWithItsDefinition) {
  mjp_test::CheckUnetPasses(GetParam(), mjp::Backend::kCpu, mjp::Precision::kFp32, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, UnetPass, testing::ValuesIn(mjp_test::UnetShapes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
