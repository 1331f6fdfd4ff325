// Passes of the U-Net on the GPU, on whatever kernels run them, against their definition in double
// precision.

#include "policy/cuda/cuda_policy.h"
#include "tests/support/gpu/unet_pass_check.h"

namespace {

struct FormatLimit {
  const char* name;
  mjp::Precision precision;
  double limit;  // docs/NUMERICS.md, network output
};

class CudaUnetPass : public testing::TestWithParam<mjp_test::UnetShape> {};

TEST_P(CudaUnetPass, AgreesWithItsDefinition) {
  std::string why;
  if (!mjp::CudaUsable(&why)) GTEST_SKIP() << why;
  for (const FormatLimit& format : {FormatLimit{"fp32", mjp::Precision::kFp32, 1e-5},
                                    FormatLimit{"tf32", mjp::Precision::kTf32, 5e-3},
                                    FormatLimit{"fp16", mjp::Precision::kFp16, 5e-3},
                                    FormatLimit{"bf16", mjp::Precision::kBf16, 3e-2}}) {
    SCOPED_TRACE(format.name);
    mjp_test::CheckUnetPasses(GetParam(), mjp::Backend::kCuda, format.precision, format.limit);
  }
}

// And one that the megakernel runs.
std::vector<mjp_test::UnetShape> Shapes() {
  std::vector<mjp_test::UnetShape> shapes = mjp_test::UnetShapes();
  shapes.push_back({"megakernel", {256, 512, 1024}, 16, 5, 8, 1});
  shapes.push_back({"megakernel_few_channels", {128, 256, 512}, 16, 5, 8, 3});
  return shapes;
}
INSTANTIATE_TEST_SUITE_P(Shapes, CudaUnetPass, testing::ValuesIn(Shapes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
