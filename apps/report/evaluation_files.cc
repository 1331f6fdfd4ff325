#include "apps/report/evaluation_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/folders.h"
#include "base/key_reader.h"
#include "tasks/results/results_folder.h"
#include "tasks/results/run_differences.h"
#include "tasks/results/shard_results.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

constexpr mjp::JsonLimits kFileLimits = {size_t{1} << 28, 16};
constexpr int kMostDecisions = std::numeric_limits<int>::max();
constexpr double kLongest = 1e15;  // of a time, in its file's unit

std::vector<StageTime> ReadStages(const std::string& file) {
  std::vector<StageTime> stages;
  if (!fs::exists(file)) return stages;
  const Json info = ReadSummary(file);
  const Json& timing = mjp::KeyReader(info, file).Required("timing");
  const Json& all = mjp::KeyReader(timing, file + ": timing").Required("stages");
  const std::string where = file + ": timing/stages";
  mjp::KeyReader(all, where);  // an object
  for (const auto& [name, stage] : all.items()) {
    mjp::KeyReader keys(stage, where + "/" + name);
    stages.push_back({name, keys.Int("n", 0, kMostDecisions), keys.Number("median_ms", 0, kLongest),
                      keys.Number("p99_ms", 0, kLongest)});
  }
  return stages;
}

EvaluationFiles ReadOne(const std::string& folder) {
  EvaluationFiles one;
  one.folder = folder;
  const std::string run = folder + "/run.json";
  one.run_text = ReadRunIn(folder);
  one.run = mjp::ParseJson(one.run_text, run);
  one.task = TaskOf(one.run_text, run);
  one.expected = ParseShardRun(one.run_text, run).Count();
  for (EpisodeResult& episode : ReadEpisodesIn(folder, true))
    one.episodes.emplace(episode.index, std::move(episode));
  if (one.episodes.empty())
    throw mjp::BadInput(folder + ": no episode is finished yet; go on with evaluate --resume");
  one.figures = Summarise(one.episodes, MeasuresOf(one.episodes));
  for (const auto& [index, episode] : one.episodes) {
    const auto videos = VideosIn(folder, {{index, episode}});
    if (!videos.empty()) one.videos[index] = videos.front();
  }
  one.stages = ReadStages(folder + "/eval_info.json");
  const std::string certificate = folder + "/certificate.json";
  if (fs::exists(certificate)) one.certificate = mjp::ReadJson(certificate, kFileLimits);
  return one;
}

}  // namespace

std::vector<EvaluationFiles> ReadEvaluations(const std::vector<std::string>& folders) {
  std::vector<EvaluationFiles> all;
  for (const std::string& folder : folders) all.push_back(ReadOne(folder));
  std::set<std::string> names;
  for (EvaluationFiles& one : all) {
    if (one.task != all.front().task) {
      throw mjp::BadInput(one.folder + ": is an evaluation of " + one.task + ", " +
                          all.front().folder + " of " + all.front().task +
                          "; make a report of each");
    }
    const fs::path path = fs::path(one.folder + "/").lexically_normal().parent_path();
    one.name = path.filename().string();
    if (!names.insert(one.name).second) one.name = path.string();
  }
  return all;
}

std::vector<StageTime> ReadProfile(const std::string& file) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<double>> times;
  const Json trace = mjp::ReadJson(file, kFileLimits);
  const Json& events = mjp::KeyReader(trace, file).Required("traceEvents");
  if (!events.is_array()) {
    throw mjp::BadInput(file + ": \"traceEvents\" is no list, as mjpolicy profile --trace writes");
  }
  for (size_t i = 0; i < events.size(); ++i) {
    mjp::KeyReader event(events[i], file + ": traceEvents " + std::to_string(i));
    if (event.Text("ph") != "X" || event.Text("cat") != "stages") continue;
    const std::string name = event.Text("name");
    if (!times.contains(name)) order.push_back(name);
    times[name].push_back(event.Number("dur", 0, kLongest) * 1e-3);
  }
  if (order.empty()) throw mjp::BadInput(file + ": no stage of a decision is in this trace");
  std::vector<StageTime> stages;
  for (const std::string& name : order) {
    const std::vector<double>& values = times[name];
    stages.push_back(
        {name, static_cast<int>(values.size()), Quantile(values, 0.5), Quantile(values, 0.99)});
  }
  return stages;
}

}  // namespace mjp::app
