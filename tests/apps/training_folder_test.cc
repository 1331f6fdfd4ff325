// The folder of a training of image-diffusion: one writer, one training, pictures that stay the
// same, a log without what a kill left.

#include "apps/image_diffusion/training_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

mjp::PictureSet Pictures() {
  return {
      .size = 1, .channels = 1, .pixels = {1, 2, 3}, .labels = {0, 1, 0}, .classes = {"a", "b"}};
}
ImageTrainOptions Options() {
  ImageTrainOptions options;
  options.data.dataset = "folder";
  return options;
}

std::string RefusalOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const mjp::Error& error) {
    return error.what();
  }
  return "";
}

class TrainingFolderTest : public ::testing::Test {
 protected:
  std::string Begin(const ImageTrainOptions& options, const mjp::PictureSet& pictures,
                    const std::string& device = "cpu") const {
    return RefusalOf(
        [&] { const TrainingFolder folder(path_, DescribeTraining(options, pictures, device)); });
  }
  const mjp_test::TempDir dir_;
  const std::string path_ = dir_ / "run";
};

TEST_F(TrainingFolderTest, GoesOnWithTheTrainingThatBeganThereAndNoOther) {
  ASSERT_EQ(Begin(Options(), Pictures()), "");
  ImageTrainOptions longer = Options();  // what the weights do not depend on
  longer.epochs = 7;
  longer.log_every = longer.sample_every = 3;
  longer.data.directory = "elsewhere";
  EXPECT_EQ(Begin(longer, Pictures()), "");
  const std::vector<std::pair<const char*, std::function<void(ImageTrainOptions&)>>> options = {
      {"dataset was folder, is mnist", [](auto& o) { o.data.dataset = "mnist"; }},
      {"unet_channels was [64,128,320], is [64]", [](auto& o) { o.unet_channels = {64}; }},
      {"batch_size was 256, is 8", [](auto& o) { o.batch = 8; }},
      {"learning_rate was 0.001, is 0.002", [](auto& o) { o.learning_rate = 0.002; }},
      {"warmup was 200, is 0", [](auto& o) { o.warmup = 0; }},
      {"average_decay was 0.999, is 0.9", [](auto& o) { o.average_decay = 0.9; }},
      {"full_precision was false, is true", [](auto& o) { o.full_precision = true; }},
      {"seed was 0, is 1", [](auto& o) { o.seed = 1; }}};
  for (const auto& [said, change] : options) {
    ImageTrainOptions other = Options();
    change(other);
    EXPECT_THAT(Begin(other, Pictures()), HasSubstr(said));
  }
  EXPECT_THAT(Begin(Options(), Pictures(), "cuda:0"), HasSubstr("device was cpu, is cuda:0"));
  EXPECT_EQ(Begin(Options(), Pictures()), "");
}

TEST_F(TrainingFolderTest, KnowsItsPictures) {
  ASSERT_EQ(Begin(Options(), Pictures()), "");
  CheckSamePictures(path_, Pictures());
  const std::vector<std::function<void(mjp::PictureSet&)>> changes = {
      [](auto& set) { set.pixels[1] = 7; },
      [](auto& set) { std::swap(set.labels[0], set.labels[1]); },
      [](auto& set) { set.classes[1] = "c"; }, [](auto& set) { set.Add(set.pixels, 0); },
      [](auto& set) { std::swap(set.pixels[0], set.pixels[2]); }};
  for (const auto& change : changes) {
    mjp::PictureSet other = Pictures();
    change(other);
    EXPECT_THAT(Begin(Options(), other), HasSubstr("pictures_sha256 was"));
    EXPECT_THAT(RefusalOf([&] { CheckSamePictures(path_, other); }),
                HasSubstr("was trained on other pictures, 3 of them"));
  }
  EXPECT_THAT(RefusalOf([&] { CheckSamePictures(dir_.path(), Pictures()); }),
              HasSubstr("run.json"));
}

TEST_F(TrainingFolderTest, HasOneWriter) {
  const TrainingFolder first(path_, DescribeTraining(Options(), Pictures(), "cpu"));
  EXPECT_THAT(Begin(Options(), Pictures()), HasSubstr("another training is writing here"));
}

TEST_F(TrainingFolderTest, SaysWhyAFolderCannotBeUsed) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/state.safetensors") << "old";
  EXPECT_THAT(Begin(Options(), Pictures()), HasSubstr("earlier build"));
  std::filesystem::remove_all(path_);
  std::ofstream(path_) << "a file";
  EXPECT_THAT(Begin(Options(), Pictures()), HasSubstr("give another --out"));
  std::filesystem::remove_all(path_);
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/run.json") << "{\"dataset\"";
  EXPECT_THAT(Begin(Options(), Pictures()), HasSubstr("run.json"));
}

TEST_F(TrainingFolderTest, IsNotInTheDataSet) {
  const std::string data = dir_ / "set";
  std::filesystem::create_directories(data + "/a");
  std::filesystem::create_directory_symlink(data, dir_ / "link");
  const auto refusal = [&](const std::string& out) {
    return RefusalOf([&] { CheckOutsideOfData(out, data); });
  };
  for (const char* inside : {"set", "set/", "set/run", "set/a/../b/c", "link/run", "link"})
    EXPECT_THAT(refusal(dir_ / inside), HasSubstr("is in the data set")) << inside;
  for (const char* outside : {"set2", "run", "set/../run", "set/../set2/set"})
    EXPECT_EQ(refusal(dir_ / outside), "") << outside;
  CheckOutsideOfData(path_, dir_ / "absent");  // its reader says so
}

TEST_F(TrainingFolderTest, TheLogGoesOnWhereTheStateDoes) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/log.jsonl") << "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st";
  TrainingFolder folder(path_, DescribeTraining(Options(), Pictures(), "cpu"));
  folder.OpenLog(2);
  folder.Log({{"step", 3}, {"loss", 0.5}});
  std::ifstream file(path_ + "/log.jsonl");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"loss\":0.5}\n");
}

}  // namespace
}  // namespace mjp::app
