// Lessons of an expert: what is taught is the expert's answer to what is seen, what is executed
// strays from it, and after a learner the expert goes on from where that got to.

#include "tasks/demonstration/lessons/lesson.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tasks/demonstration/stand_ins.h"
#include "tasks/task_code.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using ::testing::AnyOf;
using ::testing::Ne;

constexpr uint32_t kSeed = 5;

// Plays a lesson of ALOHA TransferCube.
class LessonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
    file_ = std::make_shared<const TaskFile>(std::string(MJPOLICY_SOURCE_DIR) +
                                             "/models/aloha_transfer_cube.xml");
  }
  LessonPlayer Player(double noise) const {
    LessonOptions options;
    options.noise = noise;
    options.run_on = 5;
    options.width = 32;
    options.height = 24;
    return LessonPlayer(file_, MakeExpert(*file_), options);
  }

  std::shared_ptr<const TaskFile> file_;
};

const std::vector<double>& State(const Lesson& lesson, size_t frame) {
  return lesson.frames.at(frame).numbers.at("observation.state");
}

const std::vector<double>& Taught(const Lesson& lesson, size_t frame) {
  return lesson.frames.at(frame).numbers.at("action");
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(a.at(i) - b.at(i), 2);
  return std::sqrt(sum);
}

TEST_F(LessonTest, EndsInSuccessAndIsAFunctionOfTheSeed) {
  const Lesson lesson = Player(0.001).Play(kSeed), again = Player(0.001).Play(kSeed);
  EXPECT_EQ(lesson.end, LessonEnd::kTaught);
  ASSERT_EQ(lesson.frames.size(), again.frames.size());
  for (size_t i = 0; i < lesson.frames.size(); ++i) {
    EXPECT_EQ(lesson.frames[i].numbers, again.frames[i].numbers) << i;
  }
  const auto& picture = lesson.frames.front().pictures.at("observation.images.top");
  EXPECT_EQ(picture.rgb.size(), 32u * 24 * 3);
}

TEST_F(LessonTest, WhatIsExecutedStraysFromWhatIsTaught) {
  const Lesson plain = Player(0).Play(kSeed), noisy = Player(0.002).Play(kSeed);
  ASSERT_EQ(plain.end, LessonEnd::kTaught);
  ASSERT_EQ(noisy.end, LessonEnd::kTaught);
  constexpr size_t kReaching = 40;  // control steps into the expert's first plan
  EXPECT_EQ(Taught(plain, 0), Taught(noisy, 0));
  // the plan goes on as it was made, from beside its way
  EXPECT_LT(Distance(Taught(plain, kReaching), Taught(noisy, kReaching)), 1e-9);
  EXPECT_GT(Distance(State(plain, kReaching), State(noisy, kReaching)), 1e-3);
}

TEST_F(LessonTest, EveryFifthFrameIsDrawn) {
  LessonOptions options;
  options.run_on = 5;
  options.picture_every = 5;
  options.width = 32;
  options.height = 24;
  const Lesson lesson = LessonPlayer(file_, MakeExpert(*file_), options).Play(kSeed);
  std::vector<size_t> drawn;
  for (size_t i = 0; i < lesson.frames.size(); ++i) {
    if (!lesson.frames[i].pictures.empty()) drawn.push_back(i);
  }
  ASSERT_GT(drawn.size(), 20u);
  EXPECT_LT(drawn.front(), 5u);
  for (size_t i = 1; i < drawn.size(); ++i) EXPECT_EQ(drawn[i] - drawn[i - 1], 5u);
}

TEST_F(LessonTest, TheExpertGoesOnWhereTheLearnerStopped) {
  const Lesson plain = Player(0).Play(kSeed);
  const std::unique_ptr<Demonstrator> idle = MakeNoise(*file_);
  const Lesson lesson = Player(0).PlayAfter(*idle, kSeed);
  ASSERT_FALSE(lesson.frames.empty());
  EXPECT_GT(Distance(State(lesson, 0), State(plain, 0)), 0.1);
  EXPECT_THAT(Taught(lesson, 0), Ne(Taught(plain, 0)));
}

TEST_F(LessonTest, ALearnerWhoSucceedsIsSpared) {
  const std::unique_ptr<Demonstrator> expert = MakeExpert(*file_);
  int spared = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Lesson lesson = Player(0).PlayAfter(*expert, seed);
    spared += lesson.end == LessonEnd::kSucceeded;
    EXPECT_THAT(lesson.end, AnyOf(LessonEnd::kSucceeded, LessonEnd::kTaught)) << seed;
    EXPECT_EQ(lesson.end == LessonEnd::kSucceeded, lesson.frames.empty()) << seed;
  }
  EXPECT_GT(spared, 0);
}

// Drives the cart off its rail's end, where the episode has failed for good.
class Runaway : public Demonstrator {
 public:
  void Begin(uint32_t, const mjModel*, const mjData*) override {}
  void Act(const mjModel*, const mjData*, std::span<mjtNum> action) override {
    std::ranges::fill(action, 1);
  }
};

TEST_F(LessonTest, ALearnerWhoFailsForGoodHasNotSucceeded) {
  const auto cart =
      std::make_shared<const TaskFile>(std::string(MJPOLICY_SOURCE_DIR) + "/models/cart_pole.xml");
  LessonOptions options;
  options.width = 32;
  options.height = 24;
  LessonPlayer player(cart, MakeHold(*cart), options);
  Runaway runaway;
  int lost = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Lesson lesson = player.PlayAfter(runaway, seed);
    EXPECT_NE(lesson.end, LessonEnd::kSucceeded) << seed;
    lost += lesson.end == LessonEnd::kLost;
    EXPECT_EQ(lesson.end == LessonEnd::kLost, lesson.frames.empty()) << seed;
  }
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace mjp::app
