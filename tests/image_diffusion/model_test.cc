// Checkpoints of image models, and what a seed draws from them on the CPU.

#include "image_diffusion/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "image_diffusion/sampler.h"
#include "tests/support/temp_dir.h"

namespace {

mjp::ImageConfig SmallConfig() {
  mjp::ImageConfig config;
  config.size = 8;
  config.classes = {"a", "b"};
  config.unet.down_dims = {8, 24};
  config.unet.step_embed_dim = 8;
  return config;
}

TEST(ImageModelTest, ComesBackAsItWasWritten) {
  const mjp_test::TempDir folder;
  const auto model = mjp::RandomImageModel(SmallConfig(), 1);
  mjp::WriteImageModel(folder.path(), *model);
  const auto read = mjp::LoadImageModel(folder.path());
  EXPECT_EQ(read->parameter_count, model->parameter_count);
  EXPECT_EQ(read->config.classes, model->config.classes);
  EXPECT_EQ(read->unet.up[1].block1.conv1.weight.data, model->unet.up[1].block1.conv1.weight.data);
}

TEST(ImageModelTest, TheDefaultHasAboutTenMillionParameters) {
  const auto model = mjp::RandomImageModel({}, 1);
  EXPECT_GT(model->parameter_count, 9'500'000);
  EXPECT_LT(model->parameter_count, 10'500'000);
}

TEST(ImageModelTest, RefusesWhatItCannotBe) {
  const mjp_test::TempDir folder;
  mjp::WriteImageModel(folder.path(), *mjp::RandomImageModel(SmallConfig(), 1));
  const std::string path = folder.path() + "/config.json";
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(path) << changed;
    return folder.path();
  };
  EXPECT_THROW(mjp::LoadImageModel(with("\"image_size\": 8", "\"image_size\": 9")), mjp::Error);
  EXPECT_THROW(mjp::LoadImageModel(with("image_diffusion", "diffusion")), mjp::Error);
  EXPECT_THROW(mjp::LoadImageModel(with("\"rgb\"", "\"cmyk\"")), mjp::Error);
  EXPECT_THROW(mjp::LoadImageModel(with("\"rgb\"", "\"grey\"")), mjp::Error);  // other shapes
  EXPECT_THROW(mjp::LoadImageModel(with("\"classes\"", "\"clases\"")), mjp::Error);
}

TEST(ImageSamplerTest, APictureDependsOnItsSeedAndNumberAlone) {
  const auto model = mjp::RandomImageModel(SmallConfig(), 3);
  const mjp::ImageSamplerOptions three = {.steps = 4, .batch = 3, .threads = 2};
  const mjp::ImageSamplerOptions one = {.steps = 4, .batch = 1, .threads = 1};
  const std::vector<float> all = mjp::MakeCpuImageSampler(model, three)->Sample(5, 10, 3);
  const std::vector<float> third = mjp::MakeCpuImageSampler(model, one)->Sample(5, 12, 1);
  ASSERT_EQ(all.size(), 3 * third.size());
  EXPECT_TRUE(std::equal(third.begin(), third.end(), all.end() - third.size()));
  const std::vector<float> other = mjp::MakeCpuImageSampler(model, one)->Sample(6, 12, 1);
  EXPECT_NE(other, third);
}

TEST(ImageSamplerTest, TheObserverSeesTheChain) {
  const auto model = mjp::RandomImageModel(SmallConfig(), 3);
  const mjp::ImageSamplerOptions options = {.steps = 5, .batch = 1};
  std::vector<int> seen;
  std::vector<float> last;
  const auto observer = [&](int step, std::span<const float> x) {
    seen.push_back(step);
    last.assign(x.begin(), x.end());
  };
  const std::vector<float> x =
      mjp::MakeCpuImageSampler(model, options)->Sample(1, 0, 1, observer, 2);
  EXPECT_EQ(seen, (std::vector<int>{0, 2, 4, 5}));
  EXPECT_EQ(last, x);
}

TEST(ImageSamplerTest, OtherSamplersThanDdpmAndDdimAreRefused) {
  const auto model = mjp::RandomImageModel(SmallConfig(), 3);
  EXPECT_EQ(mjp::ImageSamplerWords(), (std::vector<std::string>{"ddpm", "ddim"}));
  for (const auto sampler : {mjp::SamplerKind::kEuler, mjp::SamplerKind::kRk4,
                             mjp::SamplerKind::kOneStep, mjp::SamplerKind::kAuto}) {
    try {
      mjp::ImageSchedule(*model, {.sampler = sampler, .steps = 4});
      ADD_FAILURE() << static_cast<int>(sampler);
    } catch (const mjp::Error& error) {
      EXPECT_EQ(error.code(), mjp::ExitCode::kUsage) << error.what();
    }
  }
}

// Few pictures of a long chain take a window; steps that lie far apart, and many pictures, none.
TEST(ImageSamplerTest, AWindowIsChosenWhereItPays) {
  const auto model = mjp::RandomImageModel(SmallConfig(), 3);
  for (const auto& [batch, steps, window] : {std::array{1, 0, 16},
                                             {8, 1000, 16},
                                             {16, 1000, 8},
                                             {32, 1000, 4},
                                             {33, 1000, 0},
                                             {512, 0, 0},
                                             {8, 100, 6},
                                             {8, 50, 0}}) {
    EXPECT_EQ(mjp::ImageWindow(*model, {.steps = steps, .batch = batch}), window)
        << batch << " pictures, " << steps << " steps";
  }
}

}  // namespace
