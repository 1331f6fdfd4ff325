#include "tasks/results/compare.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "tasks/results/report.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;

EpisodeResult Episode(uint32_t seed, bool success, double score) {
  EpisodeResult e;
  e.index = static_cast<int>(seed);
  e.seed = seed;
  e.success_step = success ? 10 : -1;
  e.max_reward = score;
  return e;
}

// Twice the lower tail, summed with Pascal's triangle.
double ByPascal(int lost, int gained) {
  const int n = lost + gained;
  std::vector<double> row{1};
  for (int i = 0; i < n; ++i) {
    row.push_back(0);
    for (size_t k = row.size() - 1; k > 0; --k) row[k] = (row[k] + row[k - 1]) / 2;
    row[0] /= 2;
  }
  double tail = 0;
  for (int k = 0; k <= std::min(lost, gained); ++k) tail += row[k];
  return std::min(1.0, 2 * tail);
}

TEST(CompareTest, McNemarIsTheBinomialTail) {
  EXPECT_EQ(McNemarExact(0, 0), 1);
  EXPECT_NEAR(McNemarExact(0, 5), 0.0625, 1e-12);
  for (int lost = 0; lost <= 40; ++lost) {
    for (int gained = 0; gained <= 40; gained += 3) {
      EXPECT_NEAR(McNemarExact(lost, gained), ByPascal(lost, gained), 1e-11);
    }
  }
  EXPECT_TRUE(std::isfinite(McNemarExact(100000, 100100)));
}

TEST(CompareTest, PairsBySeedNotByPosition) {
  const std::vector<EpisodeResult> a = {Episode(1, true, 1), Episode(2, false, 0.5),
                                        Episode(3, true, 1)};
  const std::vector<EpisodeResult> b = {Episode(3, false, 0.25), Episode(2, true, 1),
                                        Episode(9, true, 1)};
  const Comparison c = Compare(a, b);
  EXPECT_EQ(c.pairs, 2);
  EXPECT_EQ(c.only_a, 1);
  EXPECT_EQ(c.only_b, 1);
  EXPECT_EQ(c.lost_seeds, std::vector<uint32_t>{3});
  EXPECT_EQ(c.gained_seeds, std::vector<uint32_t>{2});
  EXPECT_DOUBLE_EQ(c.score_a, 0.75);
  EXPECT_DOUBLE_EQ(c.score_b, 0.625);
}

TEST(CompareTest, InvalidEpisodeIsAFailureWithScoreZero) {
  EpisodeResult invalid = Episode(1, true, 1);
  invalid.valid = false;
  const Comparison c = Compare({Episode(1, true, 1)}, {invalid});
  EXPECT_EQ(c.lost, 1);
  EXPECT_EQ(c.score_b, 0);
}

// An evaluation that was resumed elsewhere has it of some episodes alone: their mean is no mean.
TEST(CompareTest, SmoothnessIsOfAllEpisodesOrOfNone) {
  const auto smooth = [](uint32_t seed, double jerk) {
    EpisodeResult e = Episode(seed, true, 1);
    e.smoothness = Smoothness{jerk, 2 * jerk};
    return e;
  };
  EpisodeResult invalid = Episode(3, false, 0);
  invalid.valid = false;
  const std::vector<EpisodeResult> whole = {smooth(1, 2), smooth(2, 4), smooth(3, 5)};
  const std::vector<EpisodeResult> cut = {smooth(1, 6), smooth(2, 8), invalid};
  const std::vector<EpisodeResult> mixed = {smooth(1, 6), Episode(2, true, 1), invalid};
  const Comparison c = Compare(whole, cut);
  ASSERT_TRUE(c.smoothness_a && c.smoothness_b);
  EXPECT_EQ(c.smoothness_a->jerk, 3);
  EXPECT_EQ(c.smoothness_b->border_jump, 14);
  for (const Comparison& some : {Compare(whole, mixed), Compare(mixed, whole)})
    EXPECT_FALSE(some.smoothness_a || some.smoothness_b);

  const auto jerk = [](const std::vector<EpisodeResult>& episodes) {
    std::map<int, EpisodeResult> by_index;
    for (const EpisodeResult& each : episodes) by_index[each.index] = each;
    const auto smoothness = Summarise(by_index, {}).smoothness;
    return smoothness ? smoothness->jerk : -1;
  };
  EXPECT_EQ(jerk(cut), 7) << "an invalid episode has none";
  EXPECT_EQ(jerk(mixed), -1);
}

// Earlier builds wrote means over the episodes that have it.
TEST(CompareTest, ASummaryWithSmoothnessThatTheEpisodesLackIsRefused) {
  const mjp_test::TempDir folder;
  const std::string run = R"({"task":"pusht","episodes":2,"seed":1,"shard":"0/1"})";
  std::map<int, EpisodeResult> whole, mixed;
  for (const int index : {0, 1}) {
    whole[index] = mixed[index] = Episode(static_cast<uint32_t>(index), true, 1);
    whole[index].smoothness = Smoothness{2, 4};
  }
  mixed[0].smoothness = Smoothness{2, 4};
  const std::string file = folder.Write("eval_info.json", SummaryText(run, {}, whole, {}));
  CheckSummary(file, run, {}, whole);
  const std::string error = mjp_test::ErrorOf([&] { CheckSummary(file, run, {}, mixed); });
  EXPECT_THAT(error,
              HasSubstr("per_group/pusht/avg_jerk is 2.0, but the episodes give none; delete"));
  mjp::Json summary = mjp::Json::parse(SummaryText(run, {}, mixed, {}));
  const auto check = [&] {
    return mjp_test::ErrorOf(
        [&] { CheckSummary(folder.Write("eval_info.json", summary.dump()), run, {}, mixed); });
  };
  EXPECT_EQ(check(), "");
  summary["overall"]["avg_border_jump"] = 3;
  EXPECT_THAT(check(), HasSubstr("overall/avg_border_jump is 3"));
}

TEST(CompareTest, IntervalOfTheMeanMatchesTheNormalOne) {
  // differences of a known spread: the bootstrap's width is that of the mean, 1.96 s / sqrt(n)
  std::vector<EpisodeResult> a, b;
  constexpr int kPairs = 400;
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < kPairs; ++i) {
    const double difference = 0.1 * std::sin(1.7 * i) - 0.02;
    a.push_back(Episode(i, false, 0.5));
    b.push_back(Episode(i, false, 0.5 + difference));
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / kPairs;
  const double half = 1.96 * std::sqrt((squares / kPairs - mean * mean) / kPairs);
  const Comparison c = Compare(a, b);
  EXPECT_NEAR(c.score_difference.low, mean - half, 0.05 * half);
  EXPECT_NEAR(c.score_difference.high, mean + half, 0.05 * half);
  EXPECT_TRUE(c.regression());
  EXPECT_EQ(Compare(a, b).score_difference.low, c.score_difference.low);
  EXPECT_FALSE(Compare(b, a).regression());
}

TEST(CompareTest, WhatCannotBePairedIsRefused) {
  EXPECT_THROW(Compare({Episode(1, true, 1)}, {Episode(2, true, 1)}), mjp::Error);
  EXPECT_THROW(Compare({Episode(1, true, 1), Episode(1, true, 1)}, {Episode(1, true, 1)}),
               mjp::Error);
}

TEST(CompareTest, RunsAreToldApart) {
  const auto files = [](const std::string& files) {
    return R"({"checkpoint_sha256":"abc","checkpoint_files":{)" + files + "}}";
  };
  const std::string config = R"("config.json":"123456789abcdef")";
  const std::string other = R"("config.json":"fedcba987654321","stats.json":"1")";
  EXPECT_EQ(ComparedRuns(
                R"({"steps":10,"seed":1,"checkpoint_files":{},"conditions":{"latency":0}})",
                R"({"seed":1,"steps":4,"checkpoint_files":{},"conditions":{"latency":2},"x":1})"),
            (Lines{"--steps: 10 -> 4", "--latency: 0 -> 2", "x: absent -> 1"}));
  EXPECT_EQ(ComparedRuns(files(config), files(config)), Lines());
  EXPECT_EQ(ComparedRuns(files(config), files(other)),
            (Lines{"the checkpoint's config.json: 123456789abc -> fedcba987654",
                   "the checkpoint's stats.json: absent -> 1"}));
}

TEST(CompareTest, TasksAreNotMixedAndEarlierBuildsHadOne) {
  const std::string rest = R"("steps":10,"checkpoint_files":{})";
  const std::string old = "{" + rest + "}", now = R"({"task":"pusht",)" + rest + "}";
  EXPECT_EQ(ComparedRuns(old, now), Lines());
  EXPECT_EQ(ComparedRuns(now, old), Lines());
  const std::string other = R"({"task":"reach",)" + rest + "}";
  EXPECT_THROW(ComparedRuns(old, other), mjp::Error);
  EXPECT_THROW(ComparedRuns(other, now), mjp::Error);
  EXPECT_EQ(ComparedRuns(other, other), Lines());
  EXPECT_THROW(ComparedRuns(R"({"task":7})", now), mjp::Error);
}

TEST(CompareTest, RunsOfEarlierBuildsKnowTheWeightsAlone) {
  const std::string old = R"({"checkpoint_sha256":"abc"})", older = R"({"checkpoint_sha256":"d"})";
  const std::string now = R"({"checkpoint_sha256":"abc","checkpoint_files":{"config.json":"1"}})";
  const std::string unknown =
      "unknown: both are of an earlier build and know their checkpoint by its weights alone";
  EXPECT_EQ(ComparedRuns(old, old), Lines{unknown});
  EXPECT_EQ(ComparedRuns(old, older), (Lines{"the checkpoint's weights: abc -> d", unknown}));
  EXPECT_EQ(ComparedRuns(old, now),
            Lines{"the checkpoint is known: by its weights alone (an earlier build) -> by all of "
                  "its files"});
  EXPECT_THROW(ComparedRuns("[]", now), mjp::Error);
}

}  // namespace
}  // namespace mjp::app
