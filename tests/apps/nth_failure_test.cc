// The n-th open, write, thread or allocation of a command fails, n = 1, 2, ... until none does:
// each time the command ends with a defined exit code and says why, and nothing it leaves behind
// is taken for a whole result.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class NthFailureTest : public mjp_test::ProgramTest,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  // Which n: each one at first, then in growing steps. MJPOLICY_TEST_FAULTS=I/K takes every K-th n,
  // counted from I + 1, so that K processes try each one; all is 0/1.
  struct Choice {
    explicit Choice(const char* wish) {
      if (wish == nullptr) return;
      const std::string text = std::string(wish) == "all" ? "0/1" : wish;
      if (std::sscanf(text.c_str(), "%ld/%ld", &shard, &shards) != 2 || shard < 0 ||
          shard >= shards) {
        throw std::invalid_argument("MJPOLICY_TEST_FAULTS is '" + text + "', not I/K or all");
      }
    }
    long First() const { return shard + 1; }
    long Next(long n) const { return n + (shards > 0 ? shards : std::max(1L, n / 12)); }

    long shard = 0, shards = 0;
  };

  // Runs a command again and again. `prepare` clears what the last run left; `check` looks at what
  // this one left, given how it ended. Returns how many runs had a failing call.
  int FailEach(const std::string& arguments, const std::function<void()>& prepare,
               const std::function<void(const Outcome&)>& check) const {
    const std::string mark = Path("failed");
    const Choice choice(std::getenv("MJPOLICY_TEST_FAULTS"));
    int failed = 0;
    for (long n = choice.First();; n = choice.Next(n)) {
      SCOPED_TRACE(std::string(GetParam()) + " " + std::to_string(n));
      prepare();
      fs::remove(mark);
      const Outcome outcome = RunMjpolicy(
          arguments, "LD_PRELOAD=" FAULT_SHIM " MJPOLICY_FAULT_MARK=" + mark + " MJPOLICY_FAULT='" +
                         GetParam() + " " + std::to_string(n) + "'");
      // some failures do no harm, such as that of a buffer that is only there to be faster
      EXPECT_THAT(outcome.code, AnyOf(0, 2, 3)) << outcome.text;
      if (outcome.code != 0) {
        EXPECT_THAT(outcome.text, HasSubstr("mjpolicy: error: "));
      }
      check(outcome);
      if (!fs::exists(mark)) {
        EXPECT_EQ(outcome.code, 0) << outcome.text;
        return failed;
      }
      ++failed;
      if (HasFailure()) return failed;
    }
  }
};

TEST_P(NthFailureTest, Inspect) {
  const Outcome whole = RunMjpolicy("inspect " + checkpoint_);
  ASSERT_EQ(whole.code, 0);
  FailEach(
      "inspect " + checkpoint_, [] {},
      [&](const Outcome& outcome) {
        if (outcome.code == 0) {
          EXPECT_EQ(outcome.text, whole.text);
        }
      });
}

TEST_P(NthFailureTest, Infer) {
  const std::string input = Path("in.safetensors"), output = Path("out.safetensors");
  mjp::SafetensorsWriter observations;
  observations.AddBytes("in/frames_u8", {1, 2, 1, 96, 96, 3},
                        std::vector<uint8_t>(2 * 96 * 96 * 3, 99));
  observations.AddFloats("in/agent_pos", {1, 2, 2}, std::vector<float>{100, 200, 110, 190});
  observations.Write(input);
  const std::string arguments =
      "infer --backend cpu --threads 2 --sampler ddim --steps 2 --checkpoint " + checkpoint_ +
      " --input " + input + " --out " + output;
  ASSERT_EQ(RunMjpolicy(arguments).code, 0);
  const auto whole = mjp::ReadFile(output, 1 << 20);
  FailEach(
      arguments, [&] { fs::remove(output); },
      [&](const Outcome& outcome) {
        EXPECT_TRUE(outcome.code != 0 || fs::exists(output));
        if (fs::exists(output)) {
          EXPECT_EQ(mjp::ReadFile(output, 1 << 20), whole);
        }
      });
}

TEST_P(NthFailureTest, EvaluateGoesOnAfterwards) {
  const std::string evaluation = "--episodes 3 --batch 2 --threads 2 ";
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + evaluation).code, 0);
  const std::string whole = Results("whole");
  const int failed = FailEach(
      Evaluate("a") + evaluation, [&] { fs::remove_all(Path("a")); },
      [&](const Outcome& outcome) {
        if (outcome.code == 0 || fs::exists(Path("a/eval_info.json"))) {
          EXPECT_EQ(Results("a"), whole);
        }
        const Outcome resumed = RunMjpolicy(Evaluate("a") + evaluation + "--resume");
        ASSERT_EQ(resumed.code, 0) << resumed.text;
        EXPECT_EQ(Results("a"), whole);
      });
  EXPECT_GT(failed, 0);
}

TEST_P(NthFailureTest, MergeCanBeRepeated) {
  for (const char* shard : {"0", "1"}) {
    ASSERT_EQ(RunMjpolicy(Evaluate(shard) + "--episodes 3 --shard " + shard + "/2").code, 0);
  }
  const std::string arguments = "merge " + Path("0") + " " + Path("1") + " --out " + Path("merged");
  ASSERT_EQ(RunMjpolicy(arguments).code, 0);
  const std::string whole = Results("merged");
  FailEach(
      arguments, [&] { fs::remove_all(Path("merged")); },
      [&](const Outcome& outcome) {
        if (outcome.code == 0 || fs::exists(Path("merged/eval_info.json"))) {
          EXPECT_EQ(Results("merged"), whole);
        }
        const Outcome repeated = RunMjpolicy(arguments + " --overwrite");
        ASSERT_EQ(repeated.code, 0) << repeated.text;
        EXPECT_EQ(Results("merged"), whole);
      });
}

INSTANTIATE_TEST_SUITE_P(Calls, NthFailureTest,
                         ::testing::Values("open", "write", "thread", "allocate"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace mjp::app
