// mjpolicy record as its users have it: by commands, and killed at any moment.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/folders.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
#include "tests/support/files_below.h"
#include "tests/support/program.h"
#include "tests/support/renderer.h"

namespace mjp::app {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::HasSubstr;

const std::string kCart = std::string(MJPOLICY_SOURCE_DIR) + "/models/cart_pole.xml";

class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = mjp_test::RendererLacks(); !why.empty()) GTEST_SKIP() << why;
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Command(const std::string& out, int episodes) const {
    return "record " + kCart + " --out " + Path(out) + " --episodes " + std::to_string(episodes) +
           " --picture 64x48 --by noise --keep all --max-steps 20 --threads 1";
  }

  mjp_test::TempDir folder_;
};

// Episodes that the last line of `log` calls saved.
int64_t Announced(const std::string& log) {
  std::istringstream lines(ReadFile(log, 1 << 20));
  int64_t saved = 0;
  for (std::string line; std::getline(lines, line);) {
    long long count = 0;
    // a line is said when it is whole
    if (line.ends_with(")") && std::sscanf(line.c_str(), "saved %lld of", &count) == 1)
      saved = count;
  }
  return saved;
}

std::vector<double> Actions(const std::string& folder, size_t episodes) {
  datasets::Dataset dataset(folder);
  std::vector<double> all;
  for (size_t i = 0; i < episodes; ++i) {
    const auto column = dataset.Read(i, *dataset.info().Find("action"));
    all.insert(all.end(), column.values.numbers.begin(), column.values.numbers.end());
  }
  return all;
}

TEST_F(RecordTest, KilledAtAnyMomentItHasWhatItSaidAndGoesOn) {
  constexpr size_t kCompared = 12;
  ASSERT_EQ(RunMjpolicy(Command("whole", kCompared)).code, 0);
  const std::string log = Path("log");
  size_t episodes = 0;
  // once it has said so much, and a little later each time: while playing, drawing or encoding
  int milliseconds = 0;
  for (const int lines : {1, 1, 2, 2, 3, 3}) {
    // the program itself is killed, not the shell around it
    const Outcome killed =
        RunMjpolicy(Command("killed", 1000) + " > " + log + " 2>&1 & while kill -0 $! && [ $(cat " +
                    log + " 2>/dev/null | grep -c '^saved') -lt " + std::to_string(lines) +
                    " ]; do sleep 0.01; done; sleep " + std::to_string(milliseconds * 1e-3) +
                    "; kill -9 $!; wait $!");
    EXPECT_EQ(killed.code, 137) << killed.text;
    milliseconds += 7;
    const int64_t announced = Announced(log);
    datasets::Dataset dataset(Path("killed"));  // as it was left
    episodes = dataset.episodes().size();
    EXPECT_GE(static_cast<int64_t>(episodes), announced);
    EXPECT_THAT(datasets::Check(dataset, {}).problems, ::testing::IsEmpty());
  }
  EXPECT_GT(episodes, 1u);
  const Outcome outcome =
      RunMjpolicy(Command("killed", static_cast<int>(std::max(kCompared, episodes + 2))));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(Actions(Path("killed"), kCompared), Actions(Path("whole"), kCompared));
}

// A data set is of one way to demonstrate: what would change an action is refused by name.
TEST_F(RecordTest, GoesOnWithTheSameDemonstratorAlone) {
  struct Row {
    const char* by;       // options that the data set is begun with
    const char* changed;  // options of a command that is not the same
    int code;
    const char* said;
  };
  const auto policy = [&](const std::string& name, int seed) {
    return "random-checkpoint --force --state 2 --action 1 --picture 64x64 --range 4 --seed " +
           std::to_string(seed) + " " + Path(name);
  };
  ASSERT_EQ(RunMjpolicy(policy("a", 1)).code, 0);
  ASSERT_EQ(RunMjpolicy(policy("b", 1)).code, 0);
  const std::string kept = "--checkpoint " + Path("a") + " --sampler ddim --steps 2 ";
  const std::string steps = "--checkpoint " + Path("a") + " --sampler ddim --steps 3 ";
  const std::string held = kept + "--hold-noise 5",
                    copy = "--checkpoint " + Path("b") + " --sampler ddim --steps 2";
  const Row rows[] = {
      {kept.c_str(), steps.c_str(), 2, "was recorded with steps \"2\", now it is \"3\""},
      {kept.c_str(), held.c_str(), 2, "was recorded with hold_noise none, now it is \"5\""},
      {held.c_str(), kept.c_str(), 2, "was recorded with hold_noise \"5\", now it is none"},
      {kept.c_str(), copy.c_str(), 0, "2 episodes"},
      {"--by planner --samples 4 --horizon 0.2", "--by planner --samples 5 --horizon 0.2", 2,
       "was recorded with samples \"4\", now it is \"5\""},
      {"--by planner --samples 4 --horizon 0.2", "--by planner --samples 4 --horizon 0.3", 2,
       "was recorded with horizon \"0.2\", now it is \"0.3\""},
      {"--by noise", "--by noise --samples 5", 1, "--samples: is read with --by planner alone"},
      {"--by noise", "--by noise --sampler ddim", 1, "--sampler: is read with --checkpoint alone"},
  };
  const std::string begin = "record " + kCart + " --picture 64x64 --keep all --max-steps 3 --out ";
  int number = 0;
  for (const Row& row : rows) {
    const std::string out = Path("set" + std::to_string(number++)) + " ";
    SCOPED_TRACE(row.changed);
    const Outcome begun = RunMjpolicy(begin + out + "--episodes 1 " + row.by);
    ASSERT_EQ(begun.code, 0) << begun.text;
    const std::string set = out.substr(0, out.size() - 1);
    const auto before = mjp_test::FilesBelow(set);
    const Outcome changed = RunMjpolicy(begin + out + "--episodes 2 " + row.changed);
    EXPECT_EQ(changed.code, row.code);
    EXPECT_THAT(changed.text, HasSubstr(row.said));
    EXPECT_EQ(mjp_test::FilesBelow(set) == before, row.code != 0) << "what is refused is as it was";
  }
  // the same folder, another policy in it
  ASSERT_EQ(RunMjpolicy(policy("a", 2)).code, 0);
  EXPECT_THAT(RunMjpolicy(begin + Path("set0") + " --episodes 2 " + kept).text,
              HasSubstr("was recorded with model.safetensors"));
}

// What cannot demonstrate begins nothing, and a data set without episodes is of nobody yet.
TEST_F(RecordTest, WhatWasNotBegunStandsInNobodysWay) {
  const std::string begin = "record " + kCart + " --picture 64x64 --keep all --max-steps 3 --out " +
                            Path("set") + " --episodes ";
  ASSERT_EQ(
      RunMjpolicy("random-checkpoint --state 3 --action 1 --picture 64x64 " + Path("arm")).code, 0);
  EXPECT_NE(RunMjpolicy(begin + "1 --checkpoint " + Path("arm")).code, 0);
  EXPECT_NE(RunMjpolicy(begin + "1 --by expert").code, 0);
  EXPECT_FALSE(std::filesystem::exists(Path("set")));
  // stopped before an episode was played
  EXPECT_EQ(
      RunMjpolicy("record " + kCart + " --picture 64x64 --max-steps 3 --episodes 1 --by hold" +
                  " --out " + Path("set"))
          .code,
      4);
  const Outcome outcome = RunMjpolicy(begin + "1 --by noise");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(RecordTest, WhatIsThereAlreadyIsSaid) {
  const auto record = [&](const std::string& picture, int episodes) {
    return RunMjpolicy("record " + kCart + " --keep all --by hold --max-steps 3 --picture " +
                       picture + " --episodes " + std::to_string(episodes) + " --out " +
                       Path("set"));
  };
  ASSERT_EQ(record("64x48", 2).code, 0);
  const Outcome fewer = record("64x48", 1);
  EXPECT_EQ(fewer.code, 0);
  EXPECT_THAT(fewer.text, HasSubstr("2 episodes, more than --episodes asks for"));
  EXPECT_THAT(fewer.text, testing::Not(HasSubstr("saved 2 of 1")));
  EXPECT_THAT(fewer.text, HasSubstr("by              hold\n"));
  const Outcome other = record("96x48", 3);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.text, HasSubstr("as image (48, 64, 3), not image (48, 96, 3); record as"));
}

TEST_F(RecordTest, WrongCommandsAreExplained) {
  const std::string begin = "record " + kCart + " --out " + Path("x");
  Outcome outcome = RunMjpolicy(begin + " --by expert");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("cart_pole has no expert here"));
  outcome = RunMjpolicy(begin + " --video --picture 32x32");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("even sides of at least 64 pixels"));
  outcome = RunMjpolicy(begin + " --picture 10by10");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("no size such as 320x240"));
  outcome = RunMjpolicy(begin + " --by planner --checkpoint nothing");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace mjp::app
