// Training on recorded frames of any task: what is read, that it is learnt, and that a break
// changes nothing.

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include "apps/train/event_file.h"
#include "apps/train/imitation/train_on_dataset.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "datasets/recording/writer.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/network_model.h"
#include "policy/policy.h"
#include "policy/unet/unet_model.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kHeight = 32, kWidth = 48, kFrames = 20;
constexpr size_t kLimit = size_t{256} << 20;

// Two cameras, of which episodes 0, 2, ... see black and white, the others white and black; the
// action is 3 or 5 by that, and twice the environment.
datasets::Info TwoCameras() {
  using datasets::MakeFeature;
  datasets::Info info;
  info.fps = 10;
  info.features = {MakeFeature("observation.state", "float32", {2}),
                   MakeFeature("observation.environment_state", "float32", {1}),
                   MakeFeature("observation.images.left", "image", {kHeight, kWidth, 3}),
                   MakeFeature("observation.images.right", "image", {kHeight, kWidth, 3}),
                   MakeFeature("action", "float32", {2})};
  return info;
}

double Environment(int64_t episode) { return episode / 2 % 2 == 0 ? -1 : 1; }

void WriteEpisodes(const std::string& folder, int64_t episodes) {
  datasets::DatasetWriter writer(folder, TwoCameras());
  for (int64_t episode = 0; episode < episodes; ++episode) {
    const bool odd = episode % 2 == 1;
    for (int frame = 0; frame < kFrames; ++frame) {
      datasets::Frame now;
      now.task = "tell left from right";
      now.numbers["observation.state"] = {0.1 * frame, 7};
      now.numbers["observation.environment_state"] = {Environment(episode)};
      now.numbers["action"] = {odd ? 5.0 : 3.0, 2 * Environment(episode)};
      const auto shade = [](bool white) {
        const std::vector<uint8_t> rgb(size_t{3} * kHeight * kWidth, white ? 230 : 20);
        return datasets::Picture{kHeight, kWidth, rgb};
      };
      now.pictures["observation.images.left"] = shade(odd);
      now.pictures["observation.images.right"] = shade(!odd);
      writer.AddFrame(now);
    }
    writer.EndEpisode();
  }
  writer.Finish();
}

class ImitationTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteEpisodes(folder_ / "data", 8); }

  ImitationOptions Data() const {
    ImitationOptions imitation;
    imitation.data.folder = folder_ / "data";
    imitation.data.validation = 0.25;
    imitation.shape.horizon = 8;
    return imitation;
  }
  TrainOptions Options(const std::string& name, int64_t steps) const {
    TrainOptions options;
    options.out = folder_ / name;
    options.device = "cpu";
    options.data.threads = 1;
    options.architecture.unet_channels = {32, 64};
    options.architecture.stage_channels = {32, 32};
    options.architecture.stem_channels = 16;
    options.architecture.action_steps = 4;
    options.step.batch = 8;
    options.step.draws = 2;
    options.steps = steps;
    options.log_every = 3;
    return options;
  }
  bool Train(const ImitationOptions& imitation, const TrainOptions& options,
             std::ostream& progress) const {
    Ranks ranks(1);
    return TrainOnDataset(imitation, options, ranks, progress, stop_);
  }

  mjp_test::TempDir folder_;
  mutable std::atomic<bool> stop_ = false;
};

// Stops the training when it says that it has come to a step.
class StopAt : public std::stringbuf {
 public:
  StopAt(std::string text, std::atomic<bool>& stop) : text_(std::move(text)), stop_(stop) {}

 protected:
  int sync() override {
    stop_ = stop_ || str().find(text_) != std::string::npos;
    return 0;
  }

 private:
  std::string text_;
  std::atomic<bool>& stop_;
};

TEST_F(ImitationTest, FramesAreThoseOfTheDataSet) {
  RecordedOptions options = Data().data;
  const RecordedFrames frames = LoadRecordedFrames(options, stop_);
  EXPECT_EQ(frames.frames(), 8 * kFrames);
  EXPECT_EQ(frames.fps, 10);
  EXPECT_THAT(frames.held_out, ElementsAre(false, false, false, true, false, false, false, true));
  ASSERT_EQ(frames.cameras.size(), 2u);
  EXPECT_EQ(frames.cameras[1].name, "observation.images.right");
  EXPECT_EQ(frames.pictures[0].index({kFrames + 3, 5, 7, 1}).item<int>(), 230);
  EXPECT_EQ(frames.pictures[1].index({kFrames + 3, 5, 7, 1}).item<int>(), 20);
  EXPECT_EQ(frames.state.index({2 * kFrames + 4, 0}).item<float>(), 0.4f);
  const NormalizerStats stats = frames.Statistics();
  EXPECT_THAT(stats.state.first, ElementsAre(0, 6));  // a number that never changes: 7 +- 1
  EXPECT_THAT(stats.state.second, ElementsAre(1.9f, 8));
  EXPECT_THAT(stats.action.first, ElementsAre(3, -2));
  EXPECT_THAT(stats.action.second, ElementsAre(5, 2));
  options.cameras = {"observation.images.right"};
  EXPECT_EQ(LoadRecordedFrames(options, stop_).pictures.size(), 1u);
  options.cameras = {"observation.images.top"};
  EXPECT_THROW(LoadRecordedFrames(options, stop_), Error);
}

// What was learnt is what the policy then does: cameras, environment, units and time in their
// order.
TEST_F(ImitationTest, ThePolicyRepeatsWhatItWasShown) {
  TrainOptions options = Options("run", 250);
  options.optimizer.learning_rate = 3e-3;
  options.optimizer.warmup_steps = 10;
  options.optimizer.average_decay = 0.9;
  options.architecture.prediction = "sample";
  options.log_every = 50;
  ImitationOptions all = Data();
  all.data.validation = 0;
  std::ostringstream progress;
  ASSERT_TRUE(Train(all, options, progress));
  PolicyOptions run;
  run.backend = Backend::kCpu;
  run.sampler = {SamplerKind::kDdim, 5};
  const auto policy = Policy::Create(LoadCheckpoint(options.out + "/checkpoint"), run);
  const size_t size = size_t{3} * kHeight * kWidth;
  for (const int episode : {0, 1, 2, 3}) {
    const bool odd = episode % 2 == 1;
    std::vector<uint8_t> pictures;
    for (int step = 0; step < 2; ++step) {
      pictures.insert(pictures.end(), size, odd ? 230 : 20);
      pictures.insert(pictures.end(), size, odd ? 20 : 230);
    }
    const std::vector<float> state = {0.4f, 7, 0.5f, 7};
    const std::vector<float> environment(2, static_cast<float>(Environment(episode)));
    const NoiseKey key{11, 0};
    PolicyInput input;
    input.count = 1;
    input.frames = pictures;
    input.state = state;
    input.environment = environment;
    input.keys = {&key, 1};
    PolicyOutput output;
    policy->Infer(input, output);
    ASSERT_EQ(output.actions.size(), 16u);
    for (int row = 0; row < 8; ++row) {
      EXPECT_NEAR(output.actions[2 * row], odd ? 5 : 3, 0.3) << episode << progress.str();
      EXPECT_NEAR(output.actions[2 * row + 1], 2 * Environment(episode), 0.6) << episode;
    }
  }
}

TEST_F(ImitationTest, ABreakChangesNoBit) {
  std::ostringstream progress;
  ASSERT_TRUE(Train(Data(), Options("whole", 9), progress));
  StopAt buffer("step 3 ", stop_);
  std::ostream stopping(&buffer);
  EXPECT_FALSE(Train(Data(), Options("broken", 9), stopping));
  stop_ = false;
  ASSERT_TRUE(Train(Data(), Options("broken", 9), progress));
  for (const char* file : {"/checkpoint/model.safetensors", "/checkpoint/config.json"}) {
    EXPECT_EQ(ReadFile(folder_ / "broken" + file, kLimit),
              ReadFile(folder_ / "whole" + file, kLimit))
        << file;
  }
  const std::string csv = ReadFile(folder_ / "broken/loss.csv", kLimit);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4) << csv;  // header, steps 3, 6, 9
  EXPECT_THAT(csv, HasSubstr("step,seconds,loss,validation_loss"));
}

TEST_F(ImitationTest, OtherDataIsRefused) {
  std::ostringstream progress;
  ASSERT_TRUE(Train(Data(), Options("run", 2), progress));
  WriteEpisodes(folder_ / "more", 2);
  ImitationOptions other = Data();
  other.data.folder = folder_ / "more";
  try {
    Train(other, Options("run", 4), progress);
    FAIL() << "went on with other data";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("was begun with other data"));
  }
}

TEST_F(ImitationTest, TheLookOfThePicturesIsKept) {
  const auto edit = [&](const Json& look) {
    const std::string path = folder_ / "data/meta/info.json";
    Json info = ReadJson(path);
    info["features"]["observation.images.right"]["look"] = look;
    WriteFileAtomically(path, info.dump());
  };
  const auto looks = [&](const std::string& run) {
    return LoadCheckpoint(folder_ / (run + "/checkpoint"))->network->trained_looks();
  };
  std::ostringstream progress;
  ASSERT_TRUE(Train(Data(), Options("unknown", 1), progress));
  EXPECT_TRUE(looks("unknown").empty());
  PictureLook look = {"mujoco", 64, 96};
  look.shadows = true;
  edit(LookToJson(look));
  ASSERT_TRUE(Train(Data(), Options("known", 1), progress));
  EXPECT_EQ(looks("known"), (PictureLooks{{"observation.images.right", look}}));
  edit({{"renderer", "raytracer"}});
  try {
    Train(Data(), Options("odd", 1), progress);
    FAIL() << "took an unknown renderer";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("meta/info.json"), HasSubstr("images.right"),
                                    HasSubstr("raytracer")));
  }
}

// LeRobot's network, whose pictures are resized and cropped to what is no square.
TEST_F(ImitationTest, LerobotsNetworkIsLoadedAgain) {
  ImitationOptions imitation = Data();
  imitation.shape.resize_height = 64;
  imitation.shape.resize_width = 96;
  imitation.shape.crop_height = 56;
  imitation.shape.crop_width = 84;
  TrainOptions options = Options("run", 1);
  options.architecture.name = "lerobot";
  options.architecture.stage_channels.clear();
  options.architecture.stem_channels = 0;
  options.step.batch = 1;
  std::ostringstream progress;
  ASSERT_TRUE(Train(imitation, options, progress));
  const auto checkpoint = LoadCheckpoint(options.out + "/checkpoint");
  EXPECT_EQ(checkpoint->config.type, "diffusion");
  const UnetModel& model = UnetOf(*checkpoint);
  EXPECT_EQ(model.config.encoder.resize_width, 96);
  EXPECT_EQ(model.config.encoder.crop_height, 56);
  const Tensor& grid = model.encoders[0].pos_grid;  // 2 rows of 3 cells: x fastest
  EXPECT_THAT(grid.data, ElementsAre(-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1));
}

// TensorBoard's records, read by a parser of this test's own.
TEST(EventFileTest, RecordsAreWhatTensorboardReads) {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  const auto masked = [&](std::string_view bytes) {
    uint32_t c = 0xffffffffu;
    for (const char byte : bytes) c = table[(c ^ static_cast<uint8_t>(byte)) & 255] ^ (c >> 8);
    c = ~c;
    return ((c >> 15) | (c << 17)) + 0xa282ead8u;
  };
  const mjp_test::TempDir folder;
  std::string bytes;
  {
    EventFile file(folder.path(), 1000);
    file.Add("loss/train", 300, 0.25, 1001);
    bytes = ReadFile(file.path(), kLimit);
  }
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t of_length = 0, of_record = 0;
    std::memcpy(&length, &bytes.at(at), 8);
    std::memcpy(&of_length, &bytes.at(at + 8), 4);
    EXPECT_EQ(of_length, masked({&bytes[at], 8}));
    records.push_back(bytes.substr(at + 12, length));
    std::memcpy(&of_record, &bytes.at(at + 12 + length), 4);
    EXPECT_EQ(of_record, masked(records.back()));
    at += 16 + length;
  }
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0], HasSubstr("\x1a\x0d"
                                    "brain.Event:2"));
  // wall time (double), step 300 as a varint, a summary with one value: tag, float
  EXPECT_EQ(records[1].substr(9),
            std::string("\x10\xac\x02\x2a\x13\x0a\x11\x0a\x0aloss/train\x15\x00\x00\x80\x3e", 24));
}

}  // namespace
}  // namespace mjp::app
