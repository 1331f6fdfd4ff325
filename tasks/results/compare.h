#ifndef TASKS_RESULTS_COMPARE_H_
#define TASKS_RESULTS_COMPARE_H_

#include <optional>
#include <string>
#include <vector>

#include "tasks/results/episode.h"
#include "tasks/results/statistics.h"

namespace mjp::app {

// Two evaluations, A before and B after, on the seeds both have. An invalid episode is a failure
// with score 0.
struct Comparison {
  int pairs = 0, only_a = 0, only_b = 0;  // seeds in both, in one alone
  int both = 0, neither = 0;              // successes
  int lost = 0, gained = 0;               // A alone succeeds; B alone succeeds
  double p_value = 1;                     // exact two-sided McNemar test of lost against gained
  double success_a = 0, success_b = 0;    // shares
  double score_a = 0, score_b = 0;        // means
  Interval success_difference, score_difference;  // B - A, 95 %, bootstrap over the pairs
  // means over the pairs where both have it; none where a pair of valid episodes lacks one
  std::optional<Smoothness> smoothness_a, smoothness_b;
  std::vector<uint32_t> lost_seeds, gained_seeds;

  // B loses significantly more than it gains, or its score is lower with 97.5 % confidence: each
  // tail has 2.5 %, so that equals are called a regression in at most 5 % of the comparisons.
  bool regression() const { return (p_value < 0.05 && lost > gained) || score_difference.high < 0; }
};

// Pairs episodes by seed. Throws Error for a seed that stands twice in one of them, or if none is
// in both. `resamples` >= 100 of the bootstrap; the same input gives the same interval.
Comparison Compare(const std::vector<EpisodeResult>& a, const std::vector<EpisodeResult>& b,
                   int resamples = 10000);

// Exact two-sided McNemar test: probability, were both as good, of a split of the discordant
// pairs at least as uneven as lost : gained.
double McNemarExact(int lost, int gained);

// The comparison as a table for people and as JSON for programs. `differences` are lines on what
// sets the two evaluations apart.
std::string ComparisonText(const Comparison& comparison,
                           const std::vector<std::string>& differences);
std::string ComparisonJson(const Comparison& comparison,
                           const std::vector<std::string>& differences);

// What sets the runs apart by the texts of their run.json, as "what: value of A -> value of B", the
// files of the checkpoints included. Throws Error if one is no object of JSON, and if they are of
// different tasks.
std::vector<std::string> ComparedRuns(const std::string& run_a, const std::string& run_b);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_COMPARE_H_
