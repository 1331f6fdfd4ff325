// A program of its own records by the functions of libmjpolicy_record.so (mjpolicy_record.h).

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <mujoco/mujoco.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "datasets/check.h"
#include "datasets/dataset.h"
#include "tasks/program/mjpolicy_record.h"
#include "tests/support/renderer.h"
#include "tests/support/temp_dir.h"

namespace mjp {
namespace {

using datasets::Check;
using datasets::Dataset;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kModels = MJPOLICY_SOURCE_DIR "/models/";

// The functions as a program finds them.
struct Library {
  Library() : handle(dlopen(RECORD_LIBRARY, RTLD_NOW)) {}
  template <typename Function>
  Function* Find(Function*, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name));
  }
  void* handle;
};

const Library& TheLibrary() {
  static const Library library;
  return library;
}
#define FUNCTION(name) TheLibrary().Find(static_cast<decltype(name)*>(nullptr), #name)

// Records episodes until it is killed, and says a letter for each that was kept.
[[noreturn]] void RecordForEver(const std::string& folder, int said) {
  char why[500] = "";
  MjpRecorder* recorder = FUNCTION(mjp_record_open)((kModels + "arm_lift.xml").c_str(),
                                                    folder.c_str(), 32, 24, why, sizeof(why));
  if (!recorder) _exit(3);
  const mjModel* model = FUNCTION(mjp_record_model)(recorder);
  mjData* data = mj_makeData(model);
  for (int episode = 0;; ++episode) {
    mj_resetDataKeyframe(model, data, 0);
    FUNCTION(mjp_record_begin)(recorder, episode);
    for (int i = 0; i < 100; ++i) {
      data->ctrl[0] = 0.1 * episode;
      if (FUNCTION(mjp_record_step)(recorder, model, data) < 0) _exit(4);
      mj_step(model, data);
    }
    if (FUNCTION(mjp_record_keep)(recorder) != 0 || write(said, "k", 1) != 1) _exit(5);
  }
}

// first: a process that draws already must not fork
TEST(KilledProgramTest, HasWhatItSaid) {
  ASSERT_NE(TheLibrary().handle, nullptr) << dlerror();
  const mjp_test::TempDir folder;
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = fork();
  if (child == 0) RecordForEver(folder / "data", said[1]);
  ::close(said[1]);
  int kept = 0;
  for (char each; kept < 3 && read(said[0], &each, 1) == 1;) ++kept;
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
    const std::string why = mjp_test::RendererLacks();
    ASSERT_NE(why, "") << "the library refuses where a renderer is";
    GTEST_SKIP() << why;
  }
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  char why[500] = "";
  MjpRecorder* recorder = FUNCTION(mjp_record_open)(  // takes up what was left
      (kModels + "arm_lift.xml").c_str(), (folder / "data").c_str(), 32, 24, why, sizeof(why));
  ASSERT_NE(recorder, nullptr) << why;
  EXPECT_GE(FUNCTION(mjp_record_episodes)(recorder), 3);
  EXPECT_EQ(FUNCTION(mjp_record_close)(recorder), 0);
  Dataset dataset(folder / "data");
  EXPECT_THAT(Check(dataset, {}).problems, IsEmpty());
  EXPECT_GE(dataset.episodes().size(), 3u);
}

class RecordLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(TheLibrary().handle, nullptr) << dlerror();
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    char why[500] = "";
    recorder_ = open(Task().c_str(), Folder().c_str(), 32, 24, why, sizeof(why));
    ASSERT_NE(recorder_, nullptr) << why;
    // a program simulates the robot's own file
    model_ = mj_loadXML((kModels + "arm.xml").c_str(), nullptr, why, sizeof(why));
    ASSERT_NE(model_, nullptr) << why;
    data_ = mj_makeData(model_);
  }
  void TearDown() override {
    EXPECT_EQ(close(recorder_), 0);
    mj_deleteData(data_);
    mj_deleteModel(model_);
  }
  static std::string Task() { return kModels + "arm_lift.xml"; }
  std::string Folder() const { return folder_ / "data"; }

  // Waves the arm for some steps of the engine, 25 in a control step.
  void Wave(int steps, double size = 0.3) {
    for (int i = 0; i < steps; ++i) {
      data_->ctrl[0] = size * std::sin(data_->time);
      data_->ctrl[2] = 1.6 + 0.1 * size * std::cos(3 * data_->time);
      const int begins = step(recorder_, model_, data_);
      ASSERT_EQ(begins, i % 25 == 0 ? 1 : 0) << error(recorder_);
      mj_step(model_, data_);
    }
  }

  decltype(mjp_record_open)* open = FUNCTION(mjp_record_open);
  decltype(mjp_record_begin)* begin = FUNCTION(mjp_record_begin);
  decltype(mjp_record_step)* step = FUNCTION(mjp_record_step);
  decltype(mjp_record_keep)* keep = FUNCTION(mjp_record_keep);
  decltype(mjp_record_discard)* discard = FUNCTION(mjp_record_discard);
  decltype(mjp_record_episodes)* episodes = FUNCTION(mjp_record_episodes);
  decltype(mjp_record_error)* error = FUNCTION(mjp_record_error);
  decltype(mjp_record_close)* close = FUNCTION(mjp_record_close);
  mjp_test::TempDir folder_;
  MjpRecorder* recorder_ = nullptr;
  mjModel* model_ = nullptr;
  mjData* data_ = nullptr;
};

TEST_F(RecordLibraryTest, WritesWhatTheProgramDrove) {
  mj_resetDataKeyframe(model_, data_, 0);
  for (int i = 0; i < 7; ++i) mj_step(model_, data_);  // an episode may begin anywhere
  ASSERT_EQ(begin(recorder_, 12), 0);
  const float first = static_cast<float>(data_->qpos[2]);
  Wave(60);  // two control steps and a part, which does not count
  EXPECT_EQ(keep(recorder_), 0) << error(recorder_);
  EXPECT_EQ(episodes(recorder_), 1);
  ASSERT_EQ(begin(recorder_, 13), 0);
  Wave(50);
  EXPECT_EQ(discard(recorder_), 0);
  ASSERT_EQ(close(recorder_), 0);
  recorder_ = nullptr;
  Dataset dataset(Folder());
  EXPECT_THAT(Check(dataset, {}).problems, IsEmpty());
  ASSERT_EQ(dataset.episodes().size(), 1u);
  const auto state = dataset.Read(0, *dataset.info().Find("observation.state"));
  ASSERT_EQ(state.values.numbers.size(), 2 * 7u);
  EXPECT_EQ(state.values.numbers[2], first);
  EXPECT_THAT(dataset.Read(0, *dataset.info().Find("seed")).values.ints,
              ::testing::ElementsAre(12, 12));
}

TEST_F(RecordLibraryTest, WhatActionsDoNotExplainIsRefused) {
  mj_resetDataKeyframe(model_, data_, 0);
  ASSERT_EQ(begin(recorder_, 0), 0);
  Wave(50);
  data_->qpos[model_->jnt_qposadr[mj_name2id(model_, mjOBJ_JOINT, "cube")]] += 0.01;  // by hand
  Wave(50);
  EXPECT_EQ(keep(recorder_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("control step 2 begins elsewhere"));
  EXPECT_EQ(episodes(recorder_), 0);
  ASSERT_EQ(begin(recorder_, 0), 0);  // and it goes on
  Wave(25);
  EXPECT_EQ(keep(recorder_), 0) << error(recorder_);
}

TEST_F(RecordLibraryTest, WrongUseIsExplained) {
  EXPECT_EQ(step(recorder_, model_, data_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("mjp_record_begin first"));
  EXPECT_EQ(begin(recorder_, -1), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("seed"));
  ASSERT_EQ(begin(recorder_, 0), 0);
  EXPECT_EQ(keep(recorder_), 1);
  ASSERT_EQ(begin(recorder_, 0), 0);
  data_->ctrl[0] = NAN;
  EXPECT_EQ(step(recorder_, model_, data_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("not a finite number"));
  data_->ctrl[0] = 0;
  model_->opt.timestep = 0.001;
  ASSERT_EQ(begin(recorder_, 0), 0);
  EXPECT_EQ(step(recorder_, model_, data_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("other timestep"));
  char why[300] = "";
  EXPECT_EQ(open("nowhere.xml", Folder().c_str(), 0, 0, why, sizeof(why)), nullptr);
  EXPECT_THAT(why, HasSubstr("nowhere.xml"));
}

TEST_F(RecordLibraryTest, WhatIsNoRecorderIsRefused) {
  const auto refuses_all = [&](MjpRecorder* recorder) {
    EXPECT_EQ(begin(recorder, 0), -1);
    EXPECT_EQ(step(recorder, model_, data_), -1);
    EXPECT_EQ(keep(recorder), -1);
    EXPECT_EQ(discard(recorder), -1);
    EXPECT_EQ(episodes(recorder), -1);
    EXPECT_EQ(FUNCTION(mjp_record_model)(recorder), nullptr);
    EXPECT_THAT(error(recorder), HasSubstr("never opened, or is closed already"));
  };
  char why[300] = "";
  MjpRecorder* other = open(Task().c_str(), (folder_ / "other").c_str(), 32, 24, why, sizeof(why));
  ASSERT_NE(other, nullptr) << why;
  EXPECT_EQ(close(other), 0);
  refuses_all(other);
  EXPECT_EQ(close(other), -1);
  refuses_all(nullptr);
  refuses_all(reinterpret_cast<MjpRecorder*>(this));
  EXPECT_EQ(open(nullptr, nullptr, 0, 0, why, sizeof(why)), nullptr);
  EXPECT_EQ(open(Task().c_str(), Folder().c_str(), 32, 24, nullptr, 0), nullptr) << "it is open";
  ASSERT_EQ(begin(recorder_, 0), 0);
  EXPECT_EQ(step(recorder_, nullptr, data_), -1);
  EXPECT_EQ(step(recorder_, model_, nullptr), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("must be given"));
}

TEST_F(RecordLibraryTest, OneThreadHasItAtATime) {
  mj_resetDataKeyframe(model_, data_, 0);
  ASSERT_EQ(begin(recorder_, 0), 0);
  Wave(50);
  std::atomic<bool> asking = false, done = false;
  int refused = 0;
  std::thread second([&] {
    while (!done) {
      asking = true;
      if (episodes(recorder_) >= 0) continue;
      EXPECT_THAT(error(recorder_), HasSubstr("in use by another thread"));
      ++refused;
    }
  });
  while (!asking) std::this_thread::yield();
  int kept = -1;  // the other one may be first: then nothing happens
  do {
    kept = keep(recorder_);
  } while (kept < 0 && std::string(error(recorder_)).find("another thread") != std::string::npos);
  EXPECT_EQ(kept, 0) << error(recorder_);
  done = true;
  second.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(episodes(recorder_), 1);
}

TEST_F(RecordLibraryTest, AChildOfForkIsRefused) {
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = begin(recorder_, 0) == -1 &&
                         std::string(error(recorder_)).find("before fork()") != std::string::npos;
    _exit(refused && close(recorder_) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_EQ(begin(recorder_, 0), 0);
}

TEST_F(RecordLibraryTest, AnotherModelWithinAnEpisodeIsRefused) {
  char why[300] = "";
  mjModel* other = mj_loadXML((kModels + "cart_pole.xml").c_str(), nullptr, why, sizeof(why));
  if (!other) other = mj_loadXML((kModels + "aloha/transfer_cube.xml").c_str(), nullptr, why, 300);
  ASSERT_NE(other, nullptr) << why;
  mjData* others = mj_makeData(other);
  mj_resetDataKeyframe(model_, data_, 0);
  ASSERT_EQ(begin(recorder_, 0), 0);
  Wave(10);
  EXPECT_EQ(step(recorder_, other, others), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("has other joints"));
  EXPECT_EQ(step(recorder_, model_, others), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("data is of another model"));
  for (int i = 10; i < 50; ++i) {  // and the episode goes on
    EXPECT_GE(step(recorder_, model_, data_), 0) << error(recorder_);
    mj_step(model_, data_);
  }
  EXPECT_EQ(keep(recorder_), 0) << error(recorder_);
  mj_deleteData(others);
  mj_deleteModel(other);
}

TEST_F(RecordLibraryTest, PicturesShowTheModelOfTheirEpisode) {
  const auto record = [&](int64_t seed) {
    mj_resetDataKeyframe(model_, data_, 0);
    ASSERT_EQ(begin(recorder_, seed), 0);
    Wave(50);
    ASSERT_EQ(keep(recorder_), 0) << error(recorder_);
  };
  record(0);
  ASSERT_GT(model_->nlight, 0);
  model_->light_ambient[0] = 1;
  record(1);
  mj_resetDataKeyframe(model_, data_, 0);
  ASSERT_EQ(begin(recorder_, 2), 0);
  Wave(25);
  model_->geom_rgba[0] = 1 - model_->geom_rgba[0];
  EXPECT_EQ(step(recorder_, model_, data_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("were changed within the episode"));
  ASSERT_EQ(discard(recorder_), 0);
  ASSERT_EQ(close(recorder_), 0);
  recorder_ = nullptr;
  Dataset dataset(Folder());
  for (const datasets::Feature& feature : dataset.info().features) {
    if (feature.kind != datasets::Kind::kImage) continue;
    const std::vector<uint8_t> dim = dataset.ReadPicture(0, feature, 0).rgb;
    EXPECT_NE(dataset.ReadPicture(1, feature, 0).rgb, dim);
  }
}

TEST_F(RecordLibraryTest, AResetBeforeTheEndIsKeptIsNamed) {
  mj_resetDataKeyframe(model_, data_, 0);
  ASSERT_EQ(begin(recorder_, 0), 0);
  Wave(50);
  mj_resetDataKeyframe(model_, data_, 0);
  EXPECT_EQ(keep(recorder_), -1);
  EXPECT_THAT(error(recorder_), HasSubstr("was reset before mjp_record_keep"));
}

}  // namespace
}  // namespace mjp
