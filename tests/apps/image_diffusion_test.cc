// image-diffusion as a user runs it: exit codes, messages, files, and the same pictures from the
// implementations that need no GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "image_diffusion/data/pictures.h"
#include "image_diffusion/model.h"
#include "tests/support/program.h"

namespace {

namespace fs = std::filesystem;
using mjp_test::Outcome;

class ImageDiffusionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    mjp::ImageConfig config;
    config.size = 8;
    config.unet.down_dims = {8, 24};
    config.unet.step_embed_dim = 8;
    mjp::WriteImageModel(Path("model"), *mjp::RandomImageModel(config, 2));
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  static Outcome Program(const std::string& arguments) {
    return mjp_test::Run(std::string(IMAGE_DIFFUSION) + " " + arguments);
  }
  // Levels of the whole grid.
  std::vector<uint8_t> Grid(const std::string& name) const {
    return mjp::ParsePicture(mjp::ReadFile(Path(name), 1 << 20), name, 132, 3);
  }
  std::string Sample(const std::string& out) const {
    return "sample --checkpoint " + Path("model") + " --n 4 --steps 5 --seed 3 --out " + Path(out);
  }

  mjp_test::TempDir folder_;
};

TEST_F(ImageDiffusionTest, UsageErrorsEndWithOne) {
  for (const char* arguments : {"", "nonsense", "sample", "train --dataset imagenet --out x",
                                "train --dataset digits --out x", "benchmark --n 0",
                                "benchmark --implementations graph:0 --n 1"}) {
    const bool trains = std::string(arguments).find("digits") != std::string::npos;
    EXPECT_EQ(Program(arguments).code, trains && !HAVE_TORCH ? 3 : 1) << arguments;
  }
}

TEST_F(ImageDiffusionTest, DrawsAGridAndAFilm) {
  const Outcome outcome = Program(Sample("a.png") + " --film " + Path("film"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(fs::exists(Path("film.mp4")) || fs::exists(Path("film.avi"))) << outcome.text;
  const std::vector<uint8_t> grid = Grid("a.png");
  const auto [least, most] = std::minmax_element(grid.begin(), grid.end());
  EXPECT_GT(*most - *least, 50);
  ASSERT_EQ(Program(Sample("b.png") + " --batch 3 --threads 1").code, 0);
  EXPECT_EQ(Grid("b.png"), grid) << "in other batches";
}

TEST_F(ImageDiffusionTest, SamplersOfPoliciesAloneAreRefused) {
  for (const std::string sampler : {"euler", "rk4", "onestep"}) {
    for (const std::string& command : {Sample("a.png"), "evaluate --run " + Path("run")}) {
      const Outcome outcome = Program(command + " --sampler " + sampler);
      EXPECT_EQ(outcome.code, 1) << command;
      EXPECT_NE(outcome.text.find(sampler + " not in {ddpm,ddim}"), std::string::npos)
          << outcome.text;
    }
  }
  EXPECT_FALSE(fs::exists(Path("a.png")));
}

TEST_F(ImageDiffusionTest, TheReferenceDrawsTheSamePictures) {
  if (!HAVE_TORCH) {
    EXPECT_EQ(Program(Sample("a.png") + " --implementation reference").code, 3);
    GTEST_SKIP() << "built without libtorch";
  }
  for (const char* sampler : {"ddpm", "ddim"}) {
    const std::string with = std::string(" --sampler ") + sampler;
    ASSERT_EQ(Program(Sample("cpu.png") + with).code, 0);
    const Outcome outcome = Program(Sample("ref.png") + with + " --implementation reference");
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    const std::vector<uint8_t> mine = Grid("cpu.png"), theirs = Grid("ref.png");
    for (size_t i = 0; i < mine.size(); ++i) {
      ASSERT_NEAR(mine[i], theirs[i], 1) << sampler << ", value " << i;
    }
  }
}

TEST_F(ImageDiffusionTest, TheBenchmarkWritesItsTableAndItsFiles) {
  const Outcome outcome =
      Program("benchmark --checkpoint " + Path("model") + " --implementations cpu --n 1,2 " +
              "--steps 3 --repeats 2 --json " + Path("b.json") + " --plot " + Path("b.svg"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("TensorRT"), std::string::npos) << outcome.text;
  const mjp::Json json = mjp::ReadJson(Path("b.json"));
  EXPECT_NE(json["version"].get<std::string>(), "");
  ASSERT_EQ(json["rows"].size(), 2u);
  for (const mjp::Json& row : json["rows"]) {
    const double step = row["step_ms"].get<double>();
    EXPECT_GT(step, 0);
    EXPECT_DOUBLE_EQ(row["picture_ms"].get<double>(), 3 * step / row["batch"].get<int>());
    EXPECT_EQ(row["speed_up"].get<double>(), 1);
  }
  const std::vector<uint8_t> svg = mjp::ReadFile(Path("b.svg"), 1 << 20);
  EXPECT_NE(std::string(svg.begin(), svg.end()).find("2 pictures"), std::string::npos);
}

TEST_F(ImageDiffusionTest, RefusesAModelThatIsNotOne) {
  fs::remove(Path("model") + "/model.safetensors");
  const Outcome outcome = Program(Sample("a.png"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("model.safetensors"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(Path("a.png")));
}

TEST_F(ImageDiffusionTest, TrainsResumesAndJudges) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const std::string train =
      "train --dataset digits --pictures 110 --image-size 8 --batch-size 11 "
      "--unet-channels 16 24 --log-every 3 --sample-every 0 --out " +
      Path("run");
  const Outcome first = Program(train + " --epochs 0.3");
  ASSERT_EQ(first.code, 0) << first.text;
  const Outcome second = Program(train + " --epochs 0.6");
  ASSERT_EQ(second.code, 0) << second.text;
  EXPECT_NE(second.text.find("from step 3"), std::string::npos) << second.text;
  EXPECT_TRUE(fs::exists(Path("run/samples_6.png")));
  const Outcome judged = Program("evaluate --run " + Path("run") +
                                 " --pictures 110 --implementations reference,cpu --n 3 --steps 3");
  ASSERT_EQ(judged.code, 0) << judged.text;
  EXPECT_NE(judged.text.find("push-t:"), std::string::npos) << judged.text;
  const Outcome misspelt = Program("evaluate --run " + Path("run") +
                                   " --pictures 110 --implementations cpu,grpah --n 3 --steps 3");
  EXPECT_EQ(misspelt.code, 1) << misspelt.text;
  EXPECT_EQ(misspelt.text.find("cpu  "), std::string::npos) << "a row before what is wrong";
}

TEST_F(ImageDiffusionTest, HasTheCommandLineOfTheProject) {
  EXPECT_TRUE(Program("--version").text.starts_with("image-diffusion 0."))
      << Program("--version").text;
  EXPECT_NE(Program("--completion fish").text.find("-a sample"), std::string::npos);
  const Outcome misspelt = Program("smaple --n 1");
  EXPECT_EQ(misspelt.code, 1);
  EXPECT_NE(misspelt.text.find("did you mean sample?"), std::string::npos) << misspelt.text;
}

TEST_F(ImageDiffusionTest, ValuesThatCannotBeAreRefusedBeforeTheTraining) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const std::string digits = "train --dataset digits --epochs 1 --out " + Path("run") + " ";
  for (const auto& [arguments, named] : std::map<std::string, std::string>{
           {"--pictures -3", "--pictures: Value -3 not in range"},
           {"--pictures 1", "--pictures: Value 1 not in range"},
           {"--image-size 0", "--image-size: Value 0 not in range"},
           {"--batch-size 0", "--batch-size: Value 0 not in range"},
           {"--learning-rate nan", "--learning-rate: 'nan' is not a number"},
           {"--log-every 0", "--log-every: Value 0 not in range"},
           {"--data " + Path("model"), "--data: digits are drawn"}}) {
    const Outcome outcome = Program(digits + arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_NE(outcome.text.find(named), std::string::npos) << outcome.text;
  }
  for (const auto& [arguments, named] : std::map<std::string, std::string>{
           {"--image-size 7", "pictures of 7 pixels: 3 levels"},
           {"--unet-channels 12 20", "12 channels: a level needs a multiple of 8"},
           {"--unet-channels 32 16", "a level must not have half"}}) {
    const Outcome outcome = Program(digits + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.text.find(named), std::string::npos) << outcome.text;
  }
  EXPECT_FALSE(fs::exists(Path("run")));
}

// A state is whole whenever the process dies, and what goes on from it ends in the same bits.
TEST_F(ImageDiffusionTest, KilledWhileTrainingAndResumedEndsInTheSameBits) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const auto train = [&](const std::string& out) {
    return "train --dataset digits --pictures 110 --image-size 8 --batch-size 11 --epochs 3 "
           "--unet-channels 16 24 --log-every 3 --sample-every 0.1 --out " +
           Path(out);
  };
  ASSERT_EQ(Program(train("whole")).code, 0);
  int killed = 0;
  for (int tenths = 2; tenths < 40; tenths += 3) {
    const std::string limit = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    killed +=
        mjp_test::Run("timeout -s KILL " + limit + " " + IMAGE_DIFFUSION + " " + train("killed"))
            .code != 0;
    if (fs::exists(Path("killed/checkpoint/config.json"))) {
      mjp::LoadImageModel(Path("killed/checkpoint"));
    }
  }
  const Outcome last = Program(train("killed"));
  ASSERT_EQ(last.code, 0) << last.text;
  EXPECT_GT(killed, 2);
  for (const char* file : {"checkpoint/model.safetensors", "judge.safetensors", "run.json"}) {
    EXPECT_EQ(mjp::ReadFile(Path("killed/") + file, 1 << 26),
              mjp::ReadFile(Path("whole/") + file, 1 << 26))
        << file;
  }
}

TEST_F(ImageDiffusionTest, ATrainingWithoutGridsSavesItsStateByTime) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const std::string train =
      "train --dataset digits --pictures 110 --image-size 8 --batch-size 11 --unet-channels 16 24 "
      "--sample-every 0 --save-every 100ms --out " +
      Path("run");
  const std::string state = Path("run/state.safetensors");
  // it would take days, and is killed when it has a state
  mjp_test::Run("(" IMAGE_DIFFUSION " " + train + " --epochs 1e6 & for i in $(seq 900); do [ -e " +
                state + " ] && break; sleep 0.1; done; kill -KILL $!; wait)");
  EXPECT_TRUE(fs::exists(state));
  const Outcome last = Program(train + " --epochs 0.1");
  EXPECT_EQ(last.code, 0) << last.text;
  EXPECT_EQ(last.text.find("from step 0\n"), std::string::npos) << last.text;
}

TEST_F(ImageDiffusionTest, GoesOnWithTheSamePicturesAlone) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const std::string train =
      "train --dataset digits --image-size 8 --batch-size 11 --unet-channels 16 24 "
      "--sample-every 0 --epochs 0.1 --out " +
      Path("run");
  ASSERT_EQ(Program(train + " --pictures 110").code, 0);
  const Outcome other = Program(train + " --pictures 120");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.text.find("pictures was 110, is 120"), std::string::npos) << other.text;
  const Outcome judged =
      Program("evaluate --run " + Path("run") + " --pictures 120 --implementations cpu --n 1");
  EXPECT_EQ(judged.code, 2);
  EXPECT_NE(judged.text.find("was trained on other pictures"), std::string::npos) << judged.text;
}

TEST_F(ImageDiffusionTest, OddSizesTrain) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const Outcome outcome = Program(
      "train --dataset digits --pictures 60 --image-size 5 --batch-size 4 "
      "--unet-channels 16 --sample-every 0 --epochs 0.1 --out " +
      Path("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(ImageDiffusionTest, FilesThatCannotBeWrittenAreRefusedBeforeTheWork) {
  fs::create_directory(Path("folder"));
  for (const std::string& out : {std::string("absent/a.png"), std::string("folder")}) {
    // it would take hours to get to the end
    const Outcome outcome = Program("sample --checkpoint " + Path("model") +
                                    " --n 4096 --steps 1000 --threads 1 --out " + Path(out));
    EXPECT_EQ(outcome.code, 2) << out;
    EXPECT_NE(outcome.text.find(out), std::string::npos) << outcome.text;
  }
  const Outcome huge =
      Program("sample --checkpoint " + Path("model") + " --n 1048576 --out " + Path("a.png"));
  EXPECT_EQ(huge.code, 1);
  EXPECT_NE(huge.text.find("larger than a PNG"), std::string::npos) << huge.text;
}

TEST_F(ImageDiffusionTest, PicturesThatAreNotFiniteAreNoPictures) {
  auto model = std::make_shared<mjp::ImageModel>(*mjp::LoadImageModel(Path("model")));
  std::ranges::fill(model->unet.final_norm.weight.data, 3e38f);
  mjp::WriteImageModel(Path("model"), *model);
  const Outcome outcome = Program(Sample("a.png"));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_NE(outcome.text.find("not finite"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(Path("a.png")));
}

TEST_F(ImageDiffusionTest, OnePictureIsNoDataSet) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  fs::create_directories(Path("set/one"));
  ASSERT_EQ(Program(Sample("set/one/a.png")).code, 0);
  const Outcome outcome =
      Program("train --dataset folder --epochs 1 --data " + Path("set") + " --out " + Path("run"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("there must be two at least"), std::string::npos) << outcome.text;
}

TEST_F(ImageDiffusionTest, SaysWhereToGetADataSet) {
  if (!HAVE_TORCH) GTEST_SKIP() << "built without libtorch";
  const Outcome outcome = Program("train --dataset cifar10 --epochs 1 --out " + Path("run"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("cifar-10-binary.tar.gz"), std::string::npos) << outcome.text;
}

}  // namespace
