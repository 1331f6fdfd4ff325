#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/bench/harness.h"
#include "policy/checkpoint/network_model.h"
#include "policy/checkpoint/normalizer.h"
#include "policy/option_names.h"
#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/evaluation/pusht_task.h"
#include "tasks/results/statistics.h"

// Time-parallel denoising over the decisions of episodes: each is taken step by step, which the
// episode follows, and with the same noise by windows of several sizes and tolerances. In a format
// other than fp32 also step by step in fp32: the format's own error.

namespace mjp::app {
namespace {

// One way to denoise, and what came of it.
struct Contender {
  std::unique_ptr<mjp::Policy> policy;
  std::vector<double> milliseconds, passes;
  std::vector<double> errors;  // largest in a chunk, as a part of the action range

  explicit Contender(const BenchOptions& options, const mjp::PolicyOptions& policy_options)
      : policy(mjp::Policy::Create(options.network, policy_options)) {}

  void Note(const mjp::PolicyOutput& output) {
    const auto& denoise = output.times[mjp::Stage::kDenoise];
    milliseconds.push_back(1e3 * (denoise.end - denoise.begin));
    passes.push_back(output.times.passes);
  }
};

// The largest difference of two chunks as a part of the range, which is 2 when normalised.
double LargestError(const mjp::FeatureStats& stats, std::span<const float> a,
                    std::span<const float> b) {
  const size_t dim = stats.first.size();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double moved =
        mjp::Normalize(stats, i % dim, a[i]) - mjp::Normalize(stats, i % dim, b[i]);
    largest = std::max(largest, std::abs(moved) / 2);
  }
  return largest;
}

// Follows the sequential chain, and asks the others the same.
class Comparison : public mjp::Policy {
 public:
  Comparison(const BenchOptions& options, Contender& sequential, std::vector<Contender>& others,
             std::atomic<bool>& enough)
      : Policy(options.network, sequential.policy->options()),
        decisions_(options.decisions),
        sequential_(sequential),
        others_(others),
        enough_(enough) {}

  void Infer(const mjp::PolicyInput& input, mjp::PolicyOutput& output) override {
    mjp::PolicyTrace trace;
    mjp::PolicyOutput other;
    other.trace = &trace;
    mjp::PolicyInput encoded = input;
    // of a policy that reads a text, where none was asked for: any
    const bool silent = sequential_.policy->options().instruction.empty();
    std::vector<std::vector<int>> words;
    if (silent && checkpoint_->network->text_tokens() > 2) words.assign(input.count, {0, 1, 2});
    encoded.instruction_ids = words;
    sequential_.policy->Infer(encoded, other);
    other.trace = nullptr;
    encoded.instruction_ids = {};
    encoded.global_cond = trace.global_cond;
    encoded.scenes = {};
    encoded.frames = {};
    sequential_.policy->Infer(encoded, output);
    sequential_.Note(output);
    const size_t chunk = output.actions.size() / input.count;
    for (Contender& each : others_) {
      each.policy->Infer(encoded, other);
      each.Note(other);
      for (int n = 0; n < input.count; ++n)
        each.errors.push_back(LargestError(checkpoint_->stats.action,
                                           {output.actions.data() + n * chunk, chunk},
                                           {other.actions.data() + n * chunk, chunk}));
    }
    decisions_ -= input.count;
    enough_ = decisions_ <= 0;
  }
  std::string Description() const override { return sequential_.policy->Description(); }

 private:
  int decisions_;
  Contender& sequential_;
  std::vector<Contender>& others_;
  std::atomic<bool>& enough_;
};

// The window and tolerance asked for, or several; before them the chain in fp32 where `plain` is in
// another format.
std::vector<mjp::PolicyOptions> Others(const mjp::PolicyOptions& asked,
                                       const mjp::PolicyOptions& plain) {
  std::vector<mjp::PolicyOptions> others;
  if (plain.backend == mjp::Backend::kCuda && plain.precision != mjp::Precision::kFp32) {
    others.push_back(plain);
    others.back().precision = mjp::Precision::kFp32;
  }
  const auto add = [&](int window, float tolerance) {
    others.push_back(plain);
    others.back().sampler.parallel_window = window;
    others.back().sampler.parallel_tolerance = tolerance;
  };
  if (asked.sampler.parallel_window > 0) {
    add(asked.sampler.parallel_window, asked.sampler.parallel_tolerance);
    return others;
  }
  for (const int window : {4, 8, 16, 32}) add(window, 0);  // the default tolerance
  for (const float tolerance : {0.1f, 0.05f, 0.02f, 0.01f, 0.003f})
    if (tolerance != plain.sampler.parallel_tolerance) add(16, tolerance);
  return others;
}

BenchRow RowOf(const Contender& contender) {
  const mjp::PolicyOptions& options = contender.policy->options();
  const mjp::SamplerOptions& sampler = options.sampler;
  char text[160];
  int length = std::snprintf(text, sizeof(text), "%s %d in %s, ", mjp::SamplerName(sampler.kind),
                             sampler.steps, mjp::PrecisionName(options.precision));
  if (sampler.parallel_window == 0) {
    std::snprintf(text + length, sizeof(text) - length, "step by step");
  } else {
    std::snprintf(text + length, sizeof(text) - length, "window of %d, tolerance %g",
                  sampler.parallel_window, sampler.parallel_tolerance);
  }
  BenchRow row = FromTimes("parallel", text, contender.milliseconds);
  row.device = options.backend == mjp::Backend::kCuda ? "GPU" : "CPU";
  const std::vector<double>& passes = contender.passes;
  double sum = 0;
  for (const double n : passes) sum += n;
  length = std::snprintf(text, sizeof(text), "%.1f passes (most %.0f)",
                         sum / static_cast<double>(passes.size()),
                         *std::max_element(passes.begin(), passes.end()));
  if (!contender.errors.empty())
    std::snprintf(text + length, sizeof(text) - length,
                  "; error / range: median %.1e, p99 %.1e, most %.1e",
                  Quantile(contender.errors, 0.5), Quantile(contender.errors, 0.99),
                  Quantile(contender.errors, 1));
  row.note = text;
  return row;
}

}  // namespace

BenchRows BenchParallel(const BenchOptions& options) {
  if (!options.network->network->sampler().parallel)
    return {Skipped("parallel", "windows of steps", "this policy denoises step by step, or not")};
  constexpr int kDecisions = 16;
  BenchOptions bench = options;
  if (bench.decisions == 0) bench.decisions = kDecisions;
  mjp::PolicyOptions plain = bench.policy;
  plain.sampler.parallel_window = 0;
  Contender sequential(bench, plain);
  std::vector<Contender> others;
  for (const mjp::PolicyOptions& other : Others(bench.policy, sequential.policy->options()))
    others.emplace_back(bench, other);
  EvaluationOptions episodes;
  episodes.episodes = bench.decisions;
  episodes.policy = sequential.policy->options();
  std::atomic<bool> enough = false;
  auto comparison = std::make_unique<Comparison>(bench, sequential, others, enough);
  Evaluate(
      PushtTask(), episodes, std::move(comparison), ShardIndices(episodes),
      [](const EpisodeResult&) {}, enough);
  BenchRows rows = {RowOf(sequential)};
  for (const Contender& other : others) rows.push_back(RowOf(other));
  return rows;
}

}  // namespace mjp::app
