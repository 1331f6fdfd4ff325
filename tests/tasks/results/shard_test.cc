#include "tasks/results/shard.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"

namespace mjp::app {
namespace {

// The shard as "i/N", or the error's text after "code N: ".
template <class Call>
std::string Outcome(Call&& call) {
  try {
    return ToString(call());
  } catch (const mjp::Error& error) {
    return "code " + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
}

std::string Parsed(const std::string& text) {
  return Outcome([&] { return ParseShard(text); });
}

TEST(Shard, IsParsed) {
  for (const char* good : {"0/1", "0/4", "3/4", "2147483646/2147483647"}) {
    EXPECT_EQ(Parsed(good), good);
  }
}

TEST(Shard, WhatIsNoneIsAnErrorOfUsage) {
  for (const char* odd : {"", "/", "1", "1/", "/4", "-1/4", "1/-4", "1/2/3", "a/b", "0x1/4", "1 /4",
                          "1/4 ", "2147483648/2147483649"}) {
    EXPECT_EQ(Parsed(odd), "code 1: shard '" + std::string(odd) + "': expected i/N, such as 0/4");
  }
}

TEST(Shard, NumbersThatDoNotFitAreAnErrorOfUsage) {
  EXPECT_EQ(Parsed("4/4"), "code 1: shard 4/4: there is no shard 4 of 4; shards are 0/N to N-1/N");
  EXPECT_EQ(Parsed("0/0").substr(0, 8), "code 1: ");
  EXPECT_EQ(Parsed("5/1").substr(0, 8), "code 1: ");
}

class ShardFromEnvironmentTest : public ::testing::Test {
 protected:
  ShardFromEnvironmentTest() { Clear(); }
  ~ShardFromEnvironmentTest() override { Clear(); }

  static void Clear() {
    for (const char* name :
         {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
          "SLURM_ARRAY_TASK_STEP", "JOB_COMPLETION_INDEX", "JOB_COMPLETION_COUNT"}) {
      ::unsetenv(name);
    }
  }
  static std::string With(const std::map<std::string, std::string>& variables) {
    Clear();
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    bool none = false;
    const std::string outcome = Outcome([&] {
      const std::optional<Shard> shard = ShardFromEnvironment();
      none = !shard;
      return shard.value_or(Shard{});
    });
    return none ? "none" : outcome;
  }
  // An array of four tasks.
  static std::string Array(const std::string& id, const std::string& from,
                           const std::string& step) {
    return With({{"SLURM_ARRAY_TASK_ID", id},
                 {"SLURM_ARRAY_TASK_COUNT", "4"},
                 {"SLURM_ARRAY_TASK_MIN", from},
                 {"SLURM_ARRAY_TASK_STEP", step}});
  }
};

TEST_F(ShardFromEnvironmentTest, OneVariableAloneSaysNothing) {
  EXPECT_EQ(With({}), "none");
  EXPECT_EQ(With({{"SLURM_ARRAY_TASK_ID", "1"}}), "none");
  EXPECT_EQ(With({{"SLURM_ARRAY_TASK_COUNT", "2"}}), "none");
  EXPECT_EQ(With({{"JOB_COMPLETION_INDEX", "1"}}), "none");
  EXPECT_EQ(With({{"JOB_COMPLETION_COUNT", "2"}}), "none");
  EXPECT_EQ(With({{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETION_COUNT", ""}}), "none");
}

TEST_F(ShardFromEnvironmentTest, ArraysMayStartAnywhereAndLeaveOutNumbers) {
  EXPECT_EQ(With({{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}), "3/4");
  EXPECT_EQ(Array("1", "1", "1"), "0/4");
  EXPECT_EQ(Array("4", "1", "1"), "3/4");
  EXPECT_EQ(Array("6", "0", "2"), "3/4");
  EXPECT_EQ(Array("11", "5", "3"), "2/4");
  EXPECT_EQ(Array("2", "", ""), "2/4");
}

TEST_F(ShardFromEnvironmentTest, ContradictionsAreErrorsOfUsage) {
  const std::string origin = "code 1: SLURM_ARRAY_TASK_ID ";
  EXPECT_EQ(Array("4", "0", "1"), origin + "4: there is no shard 4 of 4; shards are 0/N to N-1/N");
  const std::string none = ": there is no shard -1 of 4; shards are 0/N to N-1/N";
  EXPECT_EQ(Array("0", "1", "1"), origin + "0" + none) << "before the first";
  EXPECT_EQ(Array("7", "0", "2"), origin + "7" + none) << "between two";
  EXPECT_EQ(Array("2", "0", "0"), origin + "2" + none) << "no step";
  EXPECT_EQ(Array("x", "0", "1"),
            "code 1: SLURM_ARRAY_TASK_ID is 'x', not a number; give --shard i/N, or --shard 0/1 "
            "for the whole evaluation");
  EXPECT_EQ(Array("-1", "0", "1").substr(0, 32), "code 1: SLURM_ARRAY_TASK_ID is '");
}

TEST_F(ShardFromEnvironmentTest, IndexedJobs) {
  EXPECT_EQ(With({{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETION_COUNT", "2"}}), "1/2");
  EXPECT_EQ(With({{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETION_COUNT", "2"}}),
            "code 1: JOB_COMPLETION_INDEX: there is no shard 2 of 2; shards are 0/N to N-1/N");
}

}  // namespace
}  // namespace mjp::app
