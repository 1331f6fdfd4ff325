#include "tasks/evaluation/report.h"

#include <mujoco/mujoco.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "kernels/cpu/isa.h"
#include "policy/option_names.h"
#include "tasks/evaluation/statistics.h"

namespace mjp::app {
namespace {

using Json = nlohmann::ordered_json;

Json ConditionsJson(const Conditions& c) {
  return {{"latency", c.latency},
          {"picture_noise", c.picture_noise},
          {"brightness", c.brightness},
          {"picture_shift", c.picture_shift},
          {"action_noise", c.action_noise},
          {"push", c.push},
          {"success_coverage", c.success_coverage}};
}

Json EpisodeLists(const std::map<int, EpisodeResult>& episodes, const EvaluationResult& result) {
  Json sums = Json::array(), scores = Json::array(), successes = Json::array();
  for (const auto& [index, e] : episodes) {
    sums.push_back(e.sum_reward);
    scores.push_back(e.valid ? e.max_reward : 0.0);
    successes.push_back(e.success());
  }
  return {{"sum_rewards", sums},
          {"max_rewards", scores},
          {"successes", successes},
          {"video_paths", result.videos}};
}

}  // namespace

Figures Summarise(const std::map<int, EpisodeResult>& episodes) {
  Figures figures;
  std::vector<double> scores, sums, best, last, steps;
  for (const auto& [index, e] : episodes) {
    ++figures.episodes;
    figures.successes += e.success();
    figures.invalid += !e.valid;
    scores.push_back(e.valid ? e.max_reward : 0);
    sums.push_back(e.valid ? e.sum_reward : 0);
    best.push_back(e.valid ? e.max_coverage : 0);
    last.push_back(e.valid ? e.final_coverage : 0);
    if (e.success()) steps.push_back(e.success_step);
  }
  figures.mean_score = Mean(scores);
  figures.mean_sum_reward = Mean(sums);
  figures.mean_max_coverage = Mean(best);
  figures.mean_final_coverage = Mean(last);
  figures.median_success_step = Quantile(steps, 0.5);
  return figures;
}

std::string RunText(const EvaluationOptions& options, const mjp::Policy& policy,
                    const std::string& version) {
  const mjp::PolicyOptions& p = policy.options();
  const bool cuda = p.backend == mjp::Backend::kCuda;
  Json run = {
      {"version", version},
      {"mujoco", mj_versionString()},
      {"checkpoint_sha256", policy.checkpoint().sha256},
      {kCheckpointFiles, policy.checkpoint().files},
      {"episodes", options.episodes},
      {"seed", options.seed},
      {"shard", std::to_string(options.shard_index) + "/" + std::to_string(options.shard_count)},
      {"max_steps", options.max_steps},
      {"sampler",
       p.sampler.kind == mjp::SamplerKind::kAuto ? "none" : mjp::SamplerName(p.sampler.kind)},
      {"steps", p.sampler.steps},
      {"parallel_window", p.sampler.parallel_window},
      {"parallel_tolerance", p.sampler.parallel_tolerance},
      {"hold_noise", p.sampler.hold_noise},
      {"action_steps", ResolveActionSteps(options, policy.config())},
      {"renderer", options.renderer == RendererKind::kRaster ? "raster" : "mujoco"},
      {"physics", options.physics == PhysicsKind::kMujoco ? "mujoco" : "chipmunk"},
      {"conditions", ConditionsJson(options.conditions)},
      // results on the GPU depend on the configured batch, on the CPU on the instruction set
      {"backend", policy.Description()},
      {"batch", cuda ? p.batch : 0},
      {"isa", cuda ? "" : mjp::IsaName(mjp::ActiveIsa())}};
  if (!p.instruction.empty()) run["instruction"] = p.instruction;
  return run.dump(1) + "\n";
}

std::string SummaryText(const EvaluationOptions& options, const std::string& run,
                        const std::map<int, EpisodeResult>& episodes,
                        const EvaluationResult& result) {
  const Figures f = Summarise(episodes);
  const Interval interval = Wilson95(f.successes, f.episodes);
  const double n = std::max(f.episodes, 1);
  double seconds = 0;
  for (const auto& [index, e] : episodes) seconds += e.seconds;
  Json overall = {{"avg_sum_reward", f.mean_sum_reward},
                  {"avg_max_reward", f.mean_score},
                  {"pc_success", 100.0 * f.successes / n},
                  {"n_episodes", f.episodes},
                  {"n_success", f.successes},
                  {"pc_success_ci95", {100 * interval.low, 100 * interval.high}},
                  {"n_invalid", f.invalid},
                  {"avg_max_coverage", f.mean_max_coverage},
                  {"avg_final_coverage", f.mean_final_coverage},
                  {"median_success_step", f.median_success_step},
                  {"video_paths", result.videos}};
  Json group = overall;
  Json invalid = Json::array();
  for (const auto& [index, e] : episodes) {
    if (!e.valid) invalid.push_back({{"episode", index}, {"seed", e.seed}, {"reason", e.reason}});
  }
  Json stages = Json::object();
  for (const auto& [name, s] : result.stages) {
    stages[name] = {{"n", s.n}, {"median_ms", s.median}, {"p99_ms", s.p99}, {"total_ms", s.total}};
  }
  overall["eval_s"] = result.seconds;
  overall["eval_ep_s"] = result.seconds / std::max<double>(result.episodes.size(), 1);
  const Json info = {{"per_task", Json::array({{{"task_group", "pusht"},
                                                {"task_id", 0},
                                                {"metrics", EpisodeLists(episodes, result)}}})},
                     {"per_group", {{"pusht", group}}},
                     {"overall", overall},
                     {"partial", f.episodes < static_cast<int>(ShardIndices(options).size())},
                     {"invalid", invalid},
                     {"run", Json::parse(run)},
                     {"timing", {{"stages", stages}, {"episode_seconds", seconds}}}};
  return info.dump(1) + "\n";
}

std::string FiguresText(const Figures& f) {
  const Interval interval = Wilson95(f.successes, f.episodes);
  char text[512];
  std::snprintf(text, sizeof(text),
                "success         %6.2f %%   (%d of %d, 95 %% interval %.2f to %.2f)\n"
                "score           %6.4f     (mean over episodes of max coverage / 0.95, at most 1)\n"
                "final coverage  %6.4f\n"
                "steps           %6.0f     (median control steps to success)\n"
                "invalid         %6d\n",
                100.0 * f.successes / std::max(f.episodes, 1), f.successes, f.episodes,
                100 * interval.low, 100 * interval.high, f.mean_score, f.mean_final_coverage,
                f.median_success_step, f.invalid);
  return text;
}

}  // namespace mjp::app
