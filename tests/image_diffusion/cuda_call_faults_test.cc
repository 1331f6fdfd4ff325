// Each call of CUDA of the picture sampler fails once, on a runtime that needs no GPU
// (fake_cuda.h): there is an error that says so, nothing is left behind, and the next sampler
// draws.

#include <gtest/gtest.h>

#include "base/error.h"
#include "image_diffusion/sampler.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "tests/support/gpu/cuda_faults.h"
#include "tests/support/gpu/fake_cuda.h"

namespace mjp_test {
namespace {

struct Way {
  bool graph;
  int window;
};

class ImageCallFaultsTest : public ::testing::TestWithParam<Way> {
 protected:
  // Loads the network and draws two pictures.
  static std::vector<float> Draw() {
    mjp::ImageConfig config;
    config.size = 8;
    config.unet.down_dims = {16, 32};
    config.unet.step_embed_dim = 16;
    static const auto model = mjp::RandomImageModel(config, 11);
    mjp::ImageSamplerOptions options;
    options.steps = 4, options.batch = 2;
    options.precision = mjp::Precision::kFp16;
    options.graph = GetParam().graph, options.window = GetParam().window;
    return mjp::MakeCudaImageSampler(model, options)->Sample(9, 4, 2);
  }
};

TEST_P(ImageCallFaultsTest, AreSaidAndLeaveNothing) {
  std::vector<float> expected = Draw();
  const std::vector<std::string> calls = CudaCallsOf([&] { EXPECT_EQ(Draw(), expected); });
  const std::string held = FakeCudaObjects();
  for (const CudaFault& fault :
       {CudaFault{cudaErrorMemoryAllocation, false}, CudaFault{cudaErrorLaunchTimeout, true}}) {
    size_t errors = 0;
    for (size_t n = 1; n <= calls.size(); ++n) {
      ArmCudaFault(fault, static_cast<long>(n));
      try {
        EXPECT_EQ(Draw(), expected);
      } catch (const mjp::Error& error) {
        ++errors;
        EXPECT_EQ(error.code() == mjp::ExitCode::kRetryable, mjp::CudaRetryHelps(fault.error))
            << error.what();
      }
      EXPECT_EQ(DisarmCudaFault(), calls[n - 1]);
      EXPECT_EQ(FakeCudaObjects(), held) << calls[n - 1];
      EXPECT_EQ(Draw(), expected) << calls[n - 1];
    }
    EXPECT_GT(errors, calls.size() / 2);
  }
  EXPECT_EQ(FakeCudaMisuse(), "");
}

// No kernel is given more shared memory than a block of an RTX 3060 may have.
TEST(ImagesOnASmallGpu, AskForWhatItHas) {
  const FakeGpu before = TheFakeGpu();
  FakeGpu small;
  small.device = 1;
  small.capability = small.code = 86, small.code_wgmma = false;
  small.multiprocessors = 28, small.shared_kib = 99;
  TheFakeGpu() = small;
  mjp::ImageConfig config;
  config.size = 20;
  config.unet.down_dims = {64, 128, 160};
  const auto model = mjp::RandomImageModel(config, 11);
  using enum mjp::Precision;
  for (const mjp::Precision precision : {kFp16, kBf16, kTf32, kFp32}) {
    for (const int window : {0, 3}) {
      mjp::ImageSamplerOptions options;
      options.steps = 4, options.batch = 3, options.window = window;
      options.precision = precision, options.graph = true;
      EXPECT_NO_THROW(mjp::MakeCudaImageSampler(model, options)->Sample(9, 4, 3));
    }
  }
  TheFakeGpu() = before;
}

INSTANTIATE_TEST_SUITE_P(Ways, ImageCallFaultsTest,
                         ::testing::Values(Way{false, 0}, Way{true, 0}, Way{true, 3}),
                         [](const auto& info) {
                           return std::string(info.param.graph ? "Graph" : "Steps") +
                                  (info.param.window > 0 ? "OfWindows" : "");
                         });

}  // namespace
}  // namespace mjp_test
