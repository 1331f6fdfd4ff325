// Training by lessons of a task file's expert, with a round in which the student plays.

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "apps/train/imitation/train_by_lessons.h"
#include "base/error.h"
#include "base/folders.h"
#include "base/json.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/checkpoint/network_model.h"
#include "tasks/mjcf/task_file.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using ::testing::HasSubstr;

const std::string kModels = std::string(MJPOLICY_SOURCE_DIR) + "/models/";

class LessonsTest : public ::testing::Test {
 protected:
  LessonsTest() {
    lessons_.model = kModels + "aloha_transfer_cube.xml";
    lessons_.lessons = 2;
    lessons_.how.noise = 0.001;
    lessons_.how.run_on = 2;
    lessons_.how.picture_every = 4;
    lessons_.how.width = 32;
    lessons_.how.height = 24;
    imitation_.data.validation = 0.5;
    imitation_.shape.observation_steps = 1;
    imitation_.shape.horizon = 8;
    options_.out = folder_ / "run";
    options_.device = "cpu";
    options_.data.threads = 1;
    options_.architecture.unet_channels = {32, 64};
    options_.architecture.stage_channels = {32, 32};
    options_.architecture.stem_channels = 16;
    options_.step.batch = 8;
    options_.step.draws = 2;
    options_.steps = 4;
    options_.log_every = 2;
    options_.rounds.count = 1;
    options_.rounds.episodes = 2;
  }
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }
  bool Train() {
    Ranks ranks(1);
    return TrainByLessons(lessons_, imitation_, options_, ranks, progress_, stop_);
  }
  void ExpectRefused(const std::string& why) {
    try {
      Train();
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }

  mjp_test::TempDir folder_;
  LessonTraining lessons_;
  ImitationOptions imitation_;
  TrainOptions options_;
  std::ostringstream progress_;
  std::atomic<bool> stop_ = false;
};

TEST_F(LessonsTest, ARoundAddsLessonsAndAStoppedRunGoesOn) {
  ASSERT_TRUE(Train()) << progress_.str();
  const std::string text = progress_.str();
  EXPECT_THAT(text, HasSubstr("lessons: 2 of 2 starts"));
  EXPECT_THAT(text, HasSubstr("frames of 2 episodes"));
  // what the expert could save of such a student's starts was added
  const size_t second = text.rfind("lessons: ");
  ASSERT_THAT(text.substr(second), HasSubstr(" of 2 starts"));
  const int taught = text[second + 9] - '0';
  EXPECT_THAT(text.substr(second),
              HasSubstr("frames of " + std::to_string(2 + taught) + " episodes"));
  EXPECT_THAT(text, HasSubstr("step 4  100.0 %"));
  const auto checkpoint = LoadCheckpoint(options_.out + "/checkpoint");
  EXPECT_EQ(checkpoint->config.n_obs_steps, 1);
  EXPECT_EQ(checkpoint->config.cameras.at(0).width, 32);
  EXPECT_EQ(checkpoint->config.action_dim, 14);
  const PictureLooks looks = checkpoint->network->trained_looks();
  EXPECT_EQ(looks.at("observation.images.top").renderer, "mujoco");
  EXPECT_EQ(looks.at("observation.images.top").height, 24);
  // a run that was stopped in a round gives the same weights, and mixes no lessons
  const auto weights = [&] {
    return ReadFile(options_.out + "/checkpoint/model.safetensors", size_t{1} << 26);
  };
  const std::string whole = weights();
  options_.out = folder_ / "stopped";
  const std::string student = options_.out + "/students/1";
  std::thread stopper([&] {
    while (!std::filesystem::exists(student)) std::this_thread::yield();
    stop_ = true;
  });
  EXPECT_FALSE(Train());
  stopper.join();
  EXPECT_NE(weights(), whole);
  stop_ = false;
  lessons_.lessons = 1;
  ExpectRefused("was begun with other data");
  lessons_.lessons = 2;
  EXPECT_TRUE(Train());
  EXPECT_EQ(weights(), whole);
}

// Weights, and the statistics that normalise what they see, are of the same lessons.
TEST_F(LessonsTest, ARunGoesOnWithItsTaskAndHorizonAlone) {
  namespace fs = std::filesystem;
  options_.rounds.count = 0;
  const std::string text = ReadFile(lessons_.model, size_t{1} << 20);
  fs::create_directory_symlink(kModels + "aloha", folder_ / "aloha");
  lessons_.model = folder_ / "task.xml";
  folder_.Write("task.xml", text);
  ASSERT_TRUE(Train()) << progress_.str();
  options_.steps = 6;
  imitation_.shape.horizon = 16;
  ExpectRefused("was begun with other data");
  imitation_.shape.horizon = 8;
  const std::string gain = "\"state_gain\" value=\"";
  std::string other = text;
  other.replace(other.find(gain) + gain.size(), 1, "2");
  folder_.Write("task.xml", other);
  ExpectRefused("was begun with other data");
  folder_.Write("task.xml", text);
  EXPECT_TRUE(Train());
}

TEST_F(LessonsTest, ARunOfAnEarlierBuildDoesNotGoOnWithOtherLessons) {
  options_.rounds.count = 0;
  ASSERT_TRUE(Train()) << progress_.str();
  const std::string data = options_.out + "/data.json";
  Json told = ReadJson(data);
  for (const char* key : {"content", "horizon", "crop"}) told.erase(key);
  folder_.Write("run/data.json", JsonText(told));
  options_.steps = 6;
  ExpectRefused(data + ": is of an earlier build; the lessons of this build are others");
}

TEST_F(LessonsTest, ARunOfAnEarlierBuildDoesNotGoOnWithOtherStudents) {
  ASSERT_TRUE(Train()) << progress_.str();
  const std::string data = options_.out + "/data.json";
  Json told = ReadJson(data);
  told.erase("students");
  folder_.Write("run/data.json", JsonText(told));
  options_.steps = 6;
  ExpectRefused(data + ": is of an earlier build; the lessons of this build are others");
}

// Its students play at temperature 1 and whole chunks, where the training is.
TEST_F(LessonsTest, NoWeightDependsOnHowThePolicyIsExecuted) {
  const auto weights = [&](const std::string& name) {
    options_.out = folder_ / name;
    EXPECT_TRUE(Train()) << progress_.str();
    return ReadFile(options_.out + "/checkpoint/model.safetensors", size_t{1} << 26);
  };
  const std::string plain = weights("plain");
  options_.architecture.execution = {.temperature = 0.25, .replan_every = 1, .replan_beyond = 0.01};
  EXPECT_TRUE(weights("said") == plain);
  const std::string said = options_.out + "/checkpoint";
  EXPECT_EQ(LoadCheckpoint(said)->config.replan_every, 1);
  const TaskFile file(lessons_.model);
  LessonOptions how;
  auto attributes = LearnerAttributes(file, how, said);
  EXPECT_EQ(attributes["backend"], "cpu");
  EXPECT_EQ(attributes["temperature"], "1");
  EXPECT_EQ(attributes["action_steps"], "4");
  EXPECT_EQ(attributes["replan_beyond"], "0");
  for (const char* name : {"replan_after", "precision"}) {
    ASSERT_EQ(attributes.count(name), 1u) << name;
    EXPECT_EQ(attributes[name], "") << "of the file, which goes with another value";
  }
  how.cuda_device = 1;
  EXPECT_EQ(LearnerAttributes(file, how, said).count("backend"), 0u);
}

TEST_F(LessonsTest, ALongerRunLearnsFromItsRoundsAtOnce) {
  ASSERT_TRUE(Train()) << progress_.str();
  const std::string text = progress_.str();
  const std::string episodes = text.substr(text.rfind(" frames of "), 12);  // with the round's
  progress_.str("");
  options_.steps = 12;  // of which the round would be half
  EXPECT_TRUE(Train());
  const std::string longer = progress_.str();
  EXPECT_THAT(longer, HasSubstr("from step 4"));
  EXPECT_EQ(longer.find(" frames of "), longer.rfind(" frames of ")) << longer;
  EXPECT_THAT(longer, HasSubstr(episodes));
  EXPECT_THAT(longer, HasSubstr("step 12  100.0 %"));
}

TEST_F(LessonsTest, FramesKnowTheirPictures) {
  const LessonSchool school(lessons_.model, lessons_.how, 1);
  RecordedFrames frames = school.Play({2, 0, 0.5, ""}, stop_).frames;
  const int64_t count = frames.frames(), pictures = frames.pictures.at(0).size(0);
  EXPECT_EQ(frames.picture_of.size(0), count);
  EXPECT_EQ(frames.action.size(0), count);
  const at::Tensor drawn = frames.picture_of.masked_select(frames.picture_of >= 0);
  EXPECT_TRUE(at::equal(drawn, at::arange(pictures, at::kLong)));
  Append(RecordedFrames(frames), frames);
  EXPECT_EQ(frames.frames(), 2 * count);
  EXPECT_EQ(frames.begin.size(), 5u);
  EXPECT_EQ(frames.held_out.size(), 4u);
  const at::Tensor all = frames.picture_of.masked_select(frames.picture_of >= 0);
  EXPECT_TRUE(at::equal(all, at::arange(2 * pictures, at::kLong)));
  EXPECT_TRUE(at::equal(frames.pictures[0][0], frames.pictures[0][pictures]));
  // an expert that comes from elsewhere may leave the range of the first lessons
  const FeatureStats range = frames.Statistics().action;
  const at::Tensor before = frames.action.clone();
  ClampActions(range, frames);
  EXPECT_TRUE(at::equal(frames.action, before));
  frames.action = at::where(frames.action > before.median(), 9.0f, -9.0f);
  ClampActions(range, frames);
  EXPECT_FALSE(at::equal(frames.action, before));
  EXPECT_TRUE((frames.action >= at::tensor(range.first)).all().item<bool>());
  EXPECT_TRUE((frames.action <= at::tensor(range.second)).all().item<bool>());
}

TEST_F(LessonsTest, AStopEndsIt) {
  stop_ = true;
  EXPECT_FALSE(Train());
}

TEST_F(LessonsTest, WhatCannotBeTaughtIsRefused) {
  lessons_.how.noise = 1;
  lessons_.lessons = 1;
  ExpectRefused("smaller --lesson-noise");
  lessons_.model = kModels + "cart_pole.xml";
  ExpectRefused("has no expert");
  imitation_.shape.observation_steps = 2;
  ExpectRefused("--observation-steps 1");
  options_.seconds = 3;
  ExpectRefused("--steps or --seconds");
}

}  // namespace
}  // namespace mjp::app
