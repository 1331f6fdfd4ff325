#include "tasks/results/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "kernels/shared/philox.h"
#include "tasks/results/run_differences.h"

namespace mjp::app {
namespace {

struct Pair {
  double score = 0, success = 0;  // B - A
};

std::map<uint32_t, EpisodeResult> BySeed(const std::vector<EpisodeResult>& episodes,
                                         const char* name) {
  std::map<uint32_t, EpisodeResult> map;
  for (const EpisodeResult& e : episodes) {
    if (!map.emplace(e.seed, e).second) {
      throw mjp::BadInput(std::string("evaluation ") + name + ": seed " + std::to_string(e.seed) +
                          " stands twice");
    }
  }
  return map;
}

double ScoreOf(const EpisodeResult& e) { return e.valid ? e.max_reward : 0; }

// A resample of the bootstrap: mean difference over as many pairs, drawn with replacement.
Pair Resample(const std::vector<Pair>& pairs, uint32_t resample) {
  Pair sum;
  const uint64_t n = pairs.size();
  for (uint64_t quad = 0; quad * 4 < n; ++quad) {
    const mjp::PhiloxWords bits =
        mjp::Philox({{static_cast<uint32_t>(quad), resample, 0, 0}}, 0x70757368u, 0x74636d70u);
    for (uint64_t i = quad * 4; i < std::min(n, quad * 4 + 4); ++i) {
      const Pair& pair = pairs[(bits.w[i % 4] * n) >> 32];
      sum.score += pair.score;
      sum.success += pair.success;
    }
  }
  return {sum.score / static_cast<double>(n), sum.success / static_cast<double>(n)};
}

void Bootstrap(const std::vector<Pair>& pairs, int resamples, Comparison& comparison) {
  std::vector<double> scores, successes;
  for (int i = 0; i < resamples; ++i) {
    const Pair mean = Resample(pairs, static_cast<uint32_t>(i));
    scores.push_back(mean.score);
    successes.push_back(mean.success);
  }
  comparison.score_difference = {Quantile(scores, 0.025), Quantile(scores, 0.975)};
  comparison.success_difference = {Quantile(successes, 0.025), Quantile(successes, 0.975)};
}

void Add(const Smoothness& one, Smoothness& sum) {
  sum.jerk += one.jerk;
  sum.border_jump += one.border_jump;
}

}  // namespace

double McNemarExact(int lost, int gained) {
  const int n = lost + gained, k = std::min(lost, gained);
  double tail = 0;
  for (int i = 0; i <= k; ++i) {
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) -
                     n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

Comparison Compare(const std::vector<EpisodeResult>& a, const std::vector<EpisodeResult>& b,
                   int resamples) {
  const auto left = BySeed(a, "A"), right = BySeed(b, "B");
  Comparison c;
  std::vector<Pair> pairs;
  Smoothness sum_a, sum_b;
  int smooth = 0, unknown = 0;  // pairs with the smoothness of both; valid ones without
  for (const auto& [seed, before] : left) {
    const auto found = right.find(seed);
    if (found == right.end()) continue;
    const EpisodeResult& after = found->second;
    const bool was = before.success(), is = after.success();
    c.both += was && is;
    c.neither += !was && !is;
    if (was && !is) c.lost_seeds.push_back(seed);
    if (!was && is) c.gained_seeds.push_back(seed);
    c.score_a += ScoreOf(before);
    c.score_b += ScoreOf(after);
    if (before.smoothness && after.smoothness) {
      ++smooth;
      Add(*before.smoothness, sum_a);
      Add(*after.smoothness, sum_b);
    } else {
      unknown += before.valid && after.valid;
    }
    pairs.push_back({ScoreOf(after) - ScoreOf(before), static_cast<double>(is) - was});
  }
  if (pairs.empty()) {
    throw mjp::BadInput(
        "the two evaluations have no seed in common; evaluate both with the same "
        "--seed");
  }
  c.pairs = static_cast<int>(pairs.size());
  c.only_a = static_cast<int>(left.size()) - c.pairs;
  c.only_b = static_cast<int>(right.size()) - c.pairs;
  c.lost = static_cast<int>(c.lost_seeds.size());
  c.gained = static_cast<int>(c.gained_seeds.size());
  c.success_a = static_cast<double>(c.both + c.lost) / c.pairs;
  c.success_b = static_cast<double>(c.both + c.gained) / c.pairs;
  c.score_a /= c.pairs;
  c.score_b /= c.pairs;
  if (smooth > 0 && unknown == 0) {
    c.smoothness_a = Smoothness{sum_a.jerk / smooth, sum_a.border_jump / smooth};
    c.smoothness_b = Smoothness{sum_b.jerk / smooth, sum_b.border_jump / smooth};
  }
  c.p_value = McNemarExact(c.lost, c.gained);
  Bootstrap(pairs, resamples, c);
  return c;
}

std::vector<std::string> ComparedRuns(const std::string& run_a, const std::string& run_b) {
  constexpr char kA[] = "run.json of A", kB[] = "run.json of B";
  const std::string task_a = TaskOf(run_a, kA), task_b = TaskOf(run_b, kB);
  if (task_a != task_b) {
    throw mjp::BadInput("A is of the task " + task_a + ", B of " + task_b +
                        ": only evaluations of one task can be compared");
  }
  std::vector<std::string> lines;
  for (const RunDifference& each : RunDifferences(run_a, kA, run_b, kB)) {
    lines.push_back(each.what + ": " + each.in_a + " -> " + each.in_b);
  }
  if (KnowsWeightsAlone(run_a, kA) && KnowsWeightsAlone(run_b, kB)) {
    lines.push_back(
        "unknown: both are of an earlier build and know their checkpoint by its weights alone");
  }
  return lines;
}

std::string ComparisonText(const Comparison& c, const std::vector<std::string>& differences) {
  std::string text;
  char line[256];
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof(line), format, values...);
    text += line;
  };
  for (const std::string& difference : differences) text += "differs         " + difference + "\n";
  add("pairs           %6d      (%d seeds only in A, %d only in B)\n", c.pairs, c.only_a, c.only_b);
  text += "                     A         B     B - A   95 % interval\n";
  add("success         %6.2f %%  %6.2f %%  %+6.2f %%   %+.2f to %+.2f\n", 100 * c.success_a,
      100 * c.success_b, 100 * (c.success_b - c.success_a), 100 * c.success_difference.low,
      100 * c.success_difference.high);
  add("score           %6.4f    %6.4f    %+6.4f    %+.4f to %+.4f\n", c.score_a, c.score_b,
      c.score_b - c.score_a, c.score_difference.low, c.score_difference.high);
  if (c.smoothness_a && c.smoothness_b) {
    const auto smooth = [&](const char* name, double a, double b) {
      add("%-15s %6.2f    %6.2f    %+6.2f\n", name, a, b, b - a);
    };
    smooth("jerk", c.smoothness_a->jerk, c.smoothness_b->jerk);
    smooth("border jump", c.smoothness_a->border_jump, c.smoothness_b->border_jump);
  }
  add("successes       %d in both, %d lost, %d gained, %d in neither\n", c.both, c.lost, c.gained,
      c.neither);
  add("McNemar         p = %.4g (exact, two-sided)\n", c.p_value);
  text += c.regression() ? "verdict         B is worse than A\n"
                         : "verdict         no significant regression\n";
  return text;
}

std::string ComparisonJson(const Comparison& c, const std::vector<std::string>& differences) {
  mjp::Json json = {{"pairs", c.pairs},
                    {"only_a", c.only_a},
                    {"only_b", c.only_b},
                    {"both", c.both},
                    {"lost", c.lost},
                    {"gained", c.gained},
                    {"neither", c.neither},
                    {"mcnemar_p", c.p_value},
                    {"success",
                     {{"a", c.success_a},
                      {"b", c.success_b},
                      {"difference_ci95", {c.success_difference.low, c.success_difference.high}}}},
                    {"score",
                     {{"a", c.score_a},
                      {"b", c.score_b},
                      {"difference_ci95", {c.score_difference.low, c.score_difference.high}}}},
                    {"lost_seeds", c.lost_seeds},
                    {"gained_seeds", c.gained_seeds},
                    {"differences", differences},
                    {"regression", c.regression()}};
  if (c.smoothness_a && c.smoothness_b) {
    json["jerk"] = {{"a", c.smoothness_a->jerk}, {"b", c.smoothness_b->jerk}};
    json["border_jump"] = {{"a", c.smoothness_a->border_jump}, {"b", c.smoothness_b->border_jump}};
  }
  return JsonText(json, 1) + "\n";
}

}  // namespace mjp::app
