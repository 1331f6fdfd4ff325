// Evaluations shared between processes, merged and compared, as a user runs them.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;
using mjp_test::Outcome;
using mjp_test::RunMjpolicy;

class ShardsTest : public mjp_test::ProgramTest {
 protected:
  static constexpr int kShards = 3;
  // Evaluates 7 episodes in three shards: folders s0, s1, s2.
  void EvaluateShards(const std::string& more = "") {
    for (int i = 0; i < kShards; ++i) {
      const std::string number = std::to_string(i);
      const Outcome outcome =
          RunMjpolicy(Evaluate("s" + number) + "--episodes 7 --shard " + number + "/3 " + more);
      ASSERT_EQ(outcome.code, 0) << outcome.text;
    }
  }
  Outcome Merge(const std::string& folders, const std::string& more = "") const {
    std::string arguments = "merge";
    std::istringstream stream(folders);
    for (std::string folder; stream >> folder;) arguments += " " + Path(folder);
    return RunMjpolicy(arguments + " --out " + Path("merged") + " " + more);
  }
  // Replaces the first `from` in a file; fails if there is none.
  void Edit(const std::string& name, const std::string& from, const std::string& to) const {
    std::ifstream in(Path(name));
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(Path(name)) << text.replace(at, from.size(), to);
  }
  void ExpectRefused(const Outcome& outcome, int code, const std::string& why) const {
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_NE(outcome.text.find(why), std::string::npos) << outcome.text;
    EXPECT_FALSE(fs::exists(Path("merged"))) << why;
  }
};

TEST_F(ShardsTest, MergedShardsEqualAnUnsharedEvaluation) {
  EvaluateShards("--videos 2");
  // the same folder, so that the videos have the same names
  ASSERT_EQ(RunMjpolicy(Evaluate("merged") + "--episodes 7 --videos 2").code, 0);
  const std::string whole = Results("merged");
  fs::remove_all(Path("merged"));
  const Outcome outcome = Merge("s2 s0 s1");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(Results("merged"), whole);
  EXPECT_NE(whole.find("eval_episode_1."), std::string::npos);
}

TEST_F(ShardsTest, PartialSetIsRefusedUnlessToldAndCanBeCompleted) {
  EvaluateShards();
  ExpectRefused(Merge("s0 s2"), 4, "shard 1/3 is missing");
  const Outcome partial = Merge("s0 s2", "--partial");
  EXPECT_EQ(partial.code, 4) << partial.text;
  std::ifstream file(Path("merged/eval_info.json"));
  const nlohmann::json info = nlohmann::json::parse(file);
  EXPECT_EQ(info.at("partial"), true);
  EXPECT_EQ(info.at("overall").at("n_episodes"), 5);
  ASSERT_EQ(RunMjpolicy(Evaluate("merged") + "--episodes 7 --resume").code, 0);
  ASSERT_EQ(RunMjpolicy(Evaluate("whole") + "--episodes 7").code, 0);
  EXPECT_EQ(Results("merged"), Results("whole"));
}

TEST_F(ShardsTest, OddSetsAreRefused) {
  EvaluateShards();
  fs::copy(Path("s0"), Path("again"));
  ExpectRefused(Merge("s0 s1 s2 again"), 2, "are both shard 0/3");
  ASSERT_EQ(RunMjpolicy(Evaluate("other") + "--episodes 7 --seed 5 --shard 1/3").code, 0);
  ExpectRefused(Merge("s0 other s2"), 2, "is of another evaluation");
  ASSERT_EQ(RunMjpolicy(Evaluate("quarter") + "--episodes 7 --shard 1/4").code, 0);
  ExpectRefused(Merge("s0 quarter s2"), 2, "but");
  ExpectRefused(Merge("s0 s1 absent"), 2, "absent: there is no evaluation in it");
  EXPECT_EQ(RunMjpolicy("merge " + Path("s0") + " --out " + Path("s0")).code, 1);
}

TEST_F(ShardsTest, OtherFilesOfTheCheckpointAreRefusedByName) {
  EvaluateShards();
  const auto change = [&](const std::string& file, const std::string& from, const std::string& to) {
    Edit("policy/" + file, from, to);
    ASSERT_EQ(RunMjpolicy(Evaluate("other") + "--episodes 7 --shard 1/3 --overwrite").code, 0);
    ExpectRefused(Merge("s0 other s2"), 2, "the checkpoint's " + file + " was");
    const Outcome resumed = RunMjpolicy(Evaluate("s1") + "--episodes 7 --shard 1/3 --resume");
    EXPECT_EQ(resumed.code, 2);
    EXPECT_NE(resumed.text.find("the checkpoint's " + file + " was"), std::string::npos)
        << resumed.text;
    const Outcome compared = RunMjpolicy("compare " + Path("s1") + " " + Path("other"));
    EXPECT_NE(compared.text.find("the checkpoint's " + file + ":"), std::string::npos)
        << compared.text;
    Edit("policy/" + file, to, from);
  };
  change("config.json", "squaredcos_cap_v2", "linear");
  change("policy_postprocessor.json", "\"name\": \"policy_post", "\"name\": \"Policy_post");
}

TEST_F(ShardsTest, ShardsOfAnEarlierBuildAreMergedWithAWord) {
  EvaluateShards();
  for (const char* shard : {"s0", "s1", "s2"}) {
    const std::string file = Path(shard) + std::string("/run.json");
    nlohmann::ordered_json run = nlohmann::ordered_json::parse(std::ifstream(file));
    run.erase("checkpoint_files");
    std::ofstream(file) << run.dump(1) << "\n";
    if (std::string(shard) != "s1") continue;
    ExpectRefused(Merge("s0 s1 s2"), 2, "by its weights alone");
  }
  const Outcome outcome = Merge("s0 s1 s2");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("weights alone"), std::string::npos) << outcome.text;
}

TEST_F(ShardsTest, MergeNamesNoOptionThatItHasNot) {
  EvaluateShards();
  ASSERT_EQ(Merge("s0 s1 s2").code, 0);
  const Outcome again = Merge("s0 s1 s2");
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.text.find("give --overwrite"), std::string::npos) << again.text;
  EXPECT_EQ(again.text.find("--resume"), std::string::npos) << again.text;
}

TEST_F(ShardsTest, ScoresThatCannotBeAreRefused) {
  EvaluateShards();
  fs::copy(Path("s0"), Path("b"));
  Edit("b/episodes.jsonl", "\"score\":", "\"score\":1e8,\"was\":");
  const Outcome outcome = RunMjpolicy("compare " + Path("s0") + " " + Path("b"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("\"score\" is 100000000.0; supported: a number from 0"),
            std::string::npos)
      << outcome.text;
}

TEST_F(ShardsTest, OddEpisodesAreRefused) {
  EvaluateShards();
  const std::string log = "s1/episodes.jsonl";
  fs::copy(Path("s1"), Path("good"));
  const auto restore = [&] {
    fs::copy_file(Path("good/episodes.jsonl"), Path(log), fs::copy_options::overwrite_existing);
  };
  Edit(log, "\"seed\":100004", "\"seed\":100005");
  ExpectRefused(Merge("s0 s1 s2"), 2, "has seed 100005, expected 100004");
  restore();
  Edit(log, "\"episode\":4", "\"episode\":3");
  ExpectRefused(Merge("s0 s1 s2"), 2, "does not belong to shard 1/3");
  restore();
  Edit(log, "\"episode\":4", "\"episode\":7");
  ExpectRefused(Merge("s0 s1 s2"), 2, "is not one of the evaluation's 7");
  restore();
  Edit(log, "\"episode\":4", "\"episode\":1");
  ExpectRefused(Merge("s0 s1 s2"), 2, "stands twice");
  restore();
  fs::resize_file(Path(log), fs::file_size(Path(log)) - 9);
  ExpectRefused(Merge("s0 s1 s2"), 2, "torn");
  EXPECT_EQ(Merge("s0 s1 s2", "--partial").code, 4);
}

TEST_F(ShardsTest, EpisodeThatIsMissingIsNamed) {
  EvaluateShards();
  std::ifstream in(Path("s2/episodes.jsonl"));
  std::string first;
  std::getline(in, first);
  std::ofstream(Path("s2/episodes.jsonl")) << first << "\n";
  ExpectRefused(Merge("s0 s1 s2"), 4, "5 is the first that is missing");
}

TEST_F(ShardsTest, TheRunSaysHowManyActionsWereExecuted) {
  const auto action_steps = [&](const std::string& more) {
    EXPECT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 1 --overwrite " + more).code, 0);
    std::ifstream file(Path("a/run.json"));
    return nlohmann::json::parse(file).at("action_steps").get<int>();
  };
  const int own = action_steps("");
  EXPECT_GT(own, 0);
  EXPECT_EQ(action_steps("--action-steps " + std::to_string(own)), own);
  EXPECT_EQ(action_steps("--action-steps 1"), 1);
}

TEST_F(ShardsTest, SchedulerNamesTheShard) {
  const auto run = [&](const std::string& environment, const std::string& more) {
    const Outcome outcome =
        RunMjpolicy(Evaluate("a") + "--episodes 7 --overwrite " + more, environment);
    if (outcome.code != 0) return "code " + std::to_string(outcome.code);
    std::ifstream file(Path("a/run.json"));
    return nlohmann::json::parse(file).at("shard").get<std::string>();
  };
  const std::string slurm = "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=4";
  EXPECT_EQ(run(slurm, ""), "3/4");
  EXPECT_EQ(run(slurm, "--shard 0/1"), "0/1");
  EXPECT_EQ(run(slurm + " SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2", "--shard auto"), "1/4");
  EXPECT_EQ(run("JOB_COMPLETION_INDEX=1 JOB_COMPLETION_COUNT=2", ""), "1/2");
  EXPECT_EQ(run("JOB_COMPLETION_INDEX=1", ""), "0/1");
  EXPECT_EQ(run("JOB_COMPLETION_INDEX=1", "--shard auto"), "code 1");
  EXPECT_EQ(run("SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_COUNT=4", ""), "code 1");
  EXPECT_EQ(run("SLURM_ARRAY_TASK_ID=x SLURM_ARRAY_TASK_COUNT=4", ""), "code 1");
  for (const char* odd : {"4/4", "1", "-1/4", "1/0", "1/2/3", "a/b"}) {
    EXPECT_EQ(run("", std::string("--shard ") + odd), "code 1") << odd;
  }
  // more shards than episodes: some have nothing to do
  EXPECT_EQ(run("", "--shard 8/9"), "8/9");
}

TEST_F(ShardsTest, CompareFindsARegression) {
  ASSERT_EQ(RunMjpolicy(Evaluate("a") + "--episodes 12").code, 0);
  fs::copy(Path("a"), Path("b"));
  const std::string both = Path("a") + " " + Path("b");
  EXPECT_EQ(RunMjpolicy("compare " + both).code, 0);
  // ten episodes of A succeed that do not in B
  for (int i = 0; i < 10; ++i) {
    Edit("a/episodes.jsonl", "\"success\":false", "\"success\":true");
    Edit("a/episodes.jsonl", "\"success_step\":-1", "\"success_step\":5");
  }
  const Outcome worse = RunMjpolicy("compare " + both + " --json");
  EXPECT_EQ(worse.code, 5) << worse.text;
  const nlohmann::json json = nlohmann::json::parse(worse.text);
  EXPECT_EQ(json.at("lost"), 10);
  EXPECT_NEAR(json.at("mcnemar_p"), 2.0 / 1024, 1e-12);
  EXPECT_EQ(RunMjpolicy("compare " + Path("b") + " " + Path("a")).code, 0);
}

TEST_F(ShardsTest, WhereThereIsNoEvaluationTheFirstSuchFolderIsNamed) {
  for (const std::string& command :
       {"compare " + Path("none") + " " + Path("nor"),
        "merge " + Path("none") + " " + Path("nor") + " --out " + Path("whole")}) {
    const Outcome outcome = RunMjpolicy(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.text, testing::HasSubstr("none: there is no evaluation in it")) << command;
  }
}

}  // namespace
}  // namespace mjp::app
