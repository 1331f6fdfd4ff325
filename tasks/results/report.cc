#include "tasks/results/report.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "tasks/results/results_folder.h"
#include "tasks/results/run_differences.h"
#include "tasks/results/shard_results.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

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

mjp::Error Other(const std::string& file, const std::string& place, const Json& stored,
                 const std::string& given) {
  return BadInput(file + ": " + place + " is " + JsonText(stored) + ", but the episodes give " +
                  given + "; delete the file and give --resume");
}

// Throws Error for the first value of a summary that is another than the episodes give. Times,
// videos and notes do not follow from them, and what a file lacks says nothing wrong.
void CheckValue(const std::string& file, const std::string& place, const Json& stored,
                const Json& computed) {
  static const std::set<std::string> kFree = {"timing", "eval_s", "eval_ep_s", "video_paths",
                                              kUnlikeTraining};
  const bool same_kind = stored.type() == computed.type() && stored.size() == computed.size();
  if (computed.is_object() && stored.is_object()) {
    for (const auto& [key, value] : computed.items()) {
      const auto found = stored.find(key);
      if (found == stored.end() || kFree.contains(key)) continue;
      CheckValue(file, place + (place.empty() ? "" : "/") + key, *found, value);
    }
    // earlier builds gave those of some episodes
    for (const char* key : {"avg_jerk", "avg_border_jump"}) {
      const auto found = stored.find(key);
      if (found != stored.end() && !computed.contains(key))
        throw Other(file, place + "/" + key, *found, "none");
    }
  } else if (computed.is_array() && same_kind) {
    for (size_t i = 0; i < computed.size(); ++i)
      CheckValue(file, place + "/" + std::to_string(i), stored[i], computed[i]);
  } else if (stored != computed) {
    throw Other(file, place, stored, JsonText(computed));
  }
}

}  // namespace

Figures Summarise(const std::map<int, EpisodeResult>& episodes,
                  const std::vector<std::string>& measures) {
  Figures figures;
  std::vector<double> scores, sums, steps, jerks, jumps;
  int unknown = 0;  // valid episodes whose smoothness was not measured
  for (const auto& [index, e] : episodes) {
    ++figures.episodes;
    figures.successes += e.success();
    figures.invalid += !e.valid;
    scores.push_back(e.valid ? e.max_reward : 0);
    sums.push_back(e.valid ? e.sum_reward : 0);
    if (e.success()) steps.push_back(e.success_step);
    if (!e.smoothness) {
      unknown += e.valid;
      continue;
    }
    jerks.push_back(e.smoothness->jerk);
    jumps.push_back(e.smoothness->border_jump);
  }
  if (!jerks.empty() && unknown == 0) figures.smoothness = Smoothness{Mean(jerks), Mean(jumps)};
  figures.mean_score = Mean(scores);
  figures.mean_sum_reward = Mean(sums);
  for (const std::string& name : measures) {
    std::vector<double> best, last;
    for (const auto& [index, e] : episodes) {
      const auto found = std::ranges::find(e.measures, name, &TaskMeasure::name);
      const bool counts = e.valid && found != e.measures.end();
      best.push_back(counts ? found->max : 0);
      last.push_back(counts ? found->final : 0);
    }
    figures.measures.push_back({name, Mean(best), Mean(last)});
  }
  figures.median_success_step = Quantile(steps, 0.5);
  return figures;
}

std::vector<std::string> MeasuresOf(const std::map<int, EpisodeResult>& episodes) {
  std::vector<std::string> names;
  if (episodes.empty()) return names;
  for (const TaskMeasure& measure : episodes.begin()->second.measures)
    names.push_back(measure.name);
  return names;
}

std::string SummaryText(const std::string& run, const std::vector<std::string>& measures,
                        const std::map<int, EpisodeResult>& episodes,
                        const EvaluationResult& result) {
  const Figures f = Summarise(episodes, measures);
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
                  {"n_invalid", f.invalid}};
  for (const TaskMeasure& mean : f.measures) {
    overall["avg_max_" + mean.name] = mean.max;
    overall["avg_final_" + mean.name] = mean.final;
  }
  overall["median_success_step"] = f.median_success_step;
  if (f.smoothness) {
    overall["avg_jerk"] = f.smoothness->jerk;
    overall["avg_border_jump"] = f.smoothness->border_jump;
  }
  overall["video_paths"] = result.videos;
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
  const std::string task = TaskOf(run, "run.json");
  const Json info = {
      {"per_task",
       Json::array(
           {{{"task_group", task}, {"task_id", 0}, {"metrics", EpisodeLists(episodes, result)}}})},
      {"per_group", {{task, group}}},
      {"overall", overall},
      {"partial", f.episodes < ParseShardRun(run, "run.json").Count()},
      {"invalid", invalid},
      {"run", Json::parse(run)},
      {"timing", {{"stages", stages}, {"episode_seconds", seconds}}}};
  return JsonText(info, 1) + "\n";
}

void CheckSummary(const std::string& file, const std::string& run,
                  const std::vector<std::string>& measures,
                  const std::map<int, EpisodeResult>& episodes) {
  CheckValue(file, "", ReadJson(file, {.bytes = kLogLimit}),
             Json::parse(SummaryText(run, measures, episodes, {})));
}

std::string FiguresText(const Figures& f, const std::string& score) {
  const Interval interval = Wilson95(f.successes, f.episodes);
  std::string text;
  char line[256];
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof(line), format, values...);
    text += line;
  };
  add("success         %6.2f %%   (%d of %d, 95 %% interval %.2f to %.2f)\n",
      100.0 * f.successes / std::max(f.episodes, 1), f.successes, f.episodes, 100 * interval.low,
      100 * interval.high);
  add("score           %6.4f     (mean over episodes of %s)\n", f.mean_score, score.c_str());
  for (const TaskMeasure& mean : f.measures) {
    add("%-15s %6.4f\n", ("final " + mean.name).c_str(), mean.final);
  }
  if (f.successes > 0)
    add("steps           %6.0f     (median control steps to success)\n", f.median_success_step);
  if (f.smoothness) {
    add("jerk            %6.2f     (mean third difference of the actions, the policy's unit)\n",
        f.smoothness->jerk);
    add("border jump     %6.2f     (mean second difference where a chunk begins)\n",
        f.smoothness->border_jump);
  }
  add("invalid         %6d\n", f.invalid);
  return text;
}

}  // namespace mjp::app
