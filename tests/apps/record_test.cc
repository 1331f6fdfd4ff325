// mjpolicy record as its users have it: by commands, and killed at any moment.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "base/folders.h"
#include "datasets/check.h"
#include "datasets/dataset.h"
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
