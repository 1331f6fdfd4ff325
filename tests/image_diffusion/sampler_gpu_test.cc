// Pictures drawn on the GPU against those of the CPU, and against themselves.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "image_diffusion/sampler.h"
#include "tests/support/check_close.h"
#include "tests/support/gpu/device_buffer.h"

namespace {

using mjp::Precision;

// Channels of both convolution kernels, a map that is no power of two.
std::shared_ptr<const mjp::ImageModel> Model() {
  mjp::ImageConfig config;
  config.size = 20;
  config.unet.down_dims = {64, 128, 160};
  config.unet.step_embed_dim = 32;
  static const auto model = mjp::RandomImageModel(config, 11);
  return model;
}

mjp::ImageSamplerOptions Options(Precision precision, bool graph, int batch) {
  return {.steps = 4, .batch = batch, .threads = 2, .precision = precision, .graph = graph};
}

constexpr int kCount = 3;  // enough positions for the wide convolution at the top

TEST(ImageSamplerGpu, DrawsWhatTheCpuDraws) {
  DEVICE_OR_SKIP();
  const auto cpu = mjp::MakeCpuImageSampler(Model(), Options(Precision::kFp32, false, kCount))
                       ->Sample(9, 4, kCount);
  // rounding of the format, through four steps of a network with random weights
  const std::pair<Precision, double> limits[] = {{Precision::kFp32, 1e-3},
                                                 {Precision::kTf32, 2e-2},
                                                 {Precision::kFp16, 2e-2},
                                                 {Precision::kBf16, 2e-1}};
  for (const auto& [precision, limit] : limits) {
    const auto gpu =
        mjp::MakeCudaImageSampler(Model(), Options(precision, false, kCount))->Sample(9, 4, kCount);
    EXPECT_TRUE(mjp_test::CheckClose(gpu, cpu, limit)) << static_cast<int>(precision);
  }
}

TEST(ImageSamplerGpu, TheGraphGivesTheSameBits) {
  DEVICE_OR_SKIP();
  for (const mjp::SamplerKind kind : {mjp::SamplerKind::kDdpm, mjp::SamplerKind::kDdim}) {
    mjp::ImageSamplerOptions options = Options(Precision::kFp16, false, kCount);
    options.sampler = kind;
    const auto one_by_one = mjp::MakeCudaImageSampler(Model(), options)->Sample(9, 4, kCount);
    options.graph = true;
    const auto graph = mjp::MakeCudaImageSampler(Model(), options);
    EXPECT_EQ(graph->Sample(9, 4, kCount), one_by_one);
    EXPECT_EQ(graph->Sample(9, 4, kCount), one_by_one) << "the second time";
  }
}

TEST(ImageSamplerGpu, AWindowDrawsWhatTheSequentialChainDraws) {
  DEVICE_OR_SKIP();
  for (const mjp::SamplerKind kind : {mjp::SamplerKind::kDdpm, mjp::SamplerKind::kDdim}) {
    mjp::ImageSamplerOptions options = Options(Precision::kFp32, false, kCount);
    options.sampler = kind;
    options.steps = 23;
    const auto sequential = mjp::MakeCudaImageSampler(Model(), options)->Sample(9, 4, kCount);
    options.window = 5;
    options.tolerance = 1e-4f;  // what is left of it is amplified by the network
    options.graph = true;
    const auto sampler = mjp::MakeCudaImageSampler(Model(), options);
    const auto window = sampler->Sample(9, 4, kCount);
    EXPECT_TRUE(mjp_test::CheckClose(window, sequential, 2e-2));
    EXPECT_LE(sampler->passes(), 23);
    EXPECT_EQ(sampler->Sample(9, 4, kCount), window) << "the second time";
    options.graph = false;
    EXPECT_EQ(mjp::MakeCudaImageSampler(Model(), options)->Sample(9, 4, kCount), window);
  }
}

TEST(ImageSamplerGpu, AWindowMovesPastNothingThatIsNoNumber) {
  DEVICE_OR_SKIP();
  mjp::ImageModel model = *Model();
  for (float& b : model.unet.out.bias.data) b = std::numeric_limits<float>::quiet_NaN();
  mjp::ImageSamplerOptions options = Options(Precision::kFp32, false, kCount);
  options.steps = 23, options.window = 5;
  const auto sampler =
      mjp::MakeCudaImageSampler(std::make_shared<const mjp::ImageModel>(model), options);
  sampler->Sample(9, 4, kCount);
  EXPECT_EQ(sampler->passes(), 23);
}

TEST(ImageSamplerGpu, NeighboursDoNotMatter) {
  DEVICE_OR_SKIP();
  for (const int window : {0, 3}) {
    mjp::ImageSamplerOptions options = Options(Precision::kFp16, true, 8);
    options.window = window;
    const auto sampler = mjp::MakeCudaImageSampler(Model(), options);
    const auto all = sampler->Sample(9, 0, 8), last = sampler->Sample(9, 7, 1);
    EXPECT_TRUE(std::equal(last.begin(), last.end(), all.end() - last.size())) << window;
  }
}

}  // namespace
