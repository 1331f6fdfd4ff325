#include "tasks/results/merge.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "tasks/recording/video_container.h"
#include "tasks/results/results_folder.h"
#include "tasks/results/run_differences.h"
#include "tasks/results/shard_results.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

// One folder and what its run.json says.
struct Part {
  std::string folder;
  ShardRun run;
};

std::vector<Part> ReadParts(const MergeOptions& options) {
  std::vector<Part> parts;
  std::map<int, std::string> seen;
  for (const std::string& folder : options.folders) {
    std::error_code none;
    if (fs::equivalent(folder, options.out, none)) {
      throw mjp::Error(mjp::ExitCode::kUsage, "--out " + options.out + " is one of the shards");
    }
    const std::string file = folder + "/run.json";
    Part part{folder, ParseShardRun(ReadRunIn(folder), file)};
    const Shard shard = part.run.shard;
    const auto differences =
        parts.empty() ? std::vector<RunDifference>()
                      : RunDifferences(parts[0].run.whole, parts[0].folder, part.run.whole, folder);
    if (!differences.empty()) {
      throw mjp::BadInput(folder + ": is of another evaluation than " + parts[0].folder + ": " +
                          WasAndIs(differences));
    }
    if (!parts.empty() && shard.count != parts[0].run.shard.count) {
      throw mjp::BadInput(folder + ": is shard " + ToString(shard) + ", but " + parts[0].folder +
                          " is shard " + ToString(parts[0].run.shard));
    }
    const auto [other, fresh] = seen.emplace(shard.index, folder);
    if (!fresh) {
      throw mjp::BadInput(folder + " and " + other->second + " are both shard " + ToString(shard));
    }
    parts.push_back(std::move(part));
  }
  const int count = parts[0].run.shard.count;
  for (int i = 0; i < count && !options.partial; ++i) {
    if (seen.contains(i)) continue;
    throw mjp::Error(mjp::ExitCode::kPartial, "shard " + ToString({i, count}) +
                                                  " is missing; --partial merges what is there");
  }
  return parts;
}

// Copies the videos of every shard to the folder of the result.
void CopyVideos(const std::vector<Part>& parts, const std::string& out,
                const std::map<int, EpisodeResult>& episodes) {
  for (const Part& part : parts) {
    for (const std::string& video : VideosIn(part.folder, episodes)) {
      const fs::path target = fs::path(out) / "videos" / fs::path(video).filename();
      const fs::path copy = target.parent_path() / UnfinishedVideoName(target.filename().string());
      std::error_code code;
      fs::create_directories(target.parent_path(), code);
      fs::copy_file(video, copy, fs::copy_options::overwrite_existing, code);
      if (code) throw mjp::BadInput(target.string() + ": cannot copy the video: " + code.message());
      mjp::RenameDurably(copy.string(), target.string());
      const std::string fault = VideoFault(target.string());
      if (!fault.empty()) throw mjp::BadInput(target.string() + ": the copied video: " + fault);
    }
  }
}

// Wall time of a shard as its summary has it, seconds; 0 if it has not come to that.
double SecondsOf(const Part& part) {
  const std::string file = part.folder + "/eval_info.json";
  if (!fs::exists(file)) return 0;
  constexpr double kLongest = 1e10;
  const Json summary = ReadSummary(file);
  const Json& overall = mjp::KeyReader(summary, file).Required("overall");
  return mjp::KeyReader(overall, file + ": overall").Number("eval_s", 0, kLongest);
}

}  // namespace

MergeResult Merge(const MergeOptions& options) {
  const std::vector<Part> parts = ReadParts(options);
  std::map<int, EpisodeResult> episodes;
  EvaluationResult total;
  for (const Part& part : parts) {
    const std::string file = part.folder + "/episodes.jsonl";
    for (EpisodeResult& e :
         ParseShardEpisodes(ReadFile(file, kLogLimit), part.run, options.partial, file)) {
      const int index = e.index;
      episodes.emplace(index, std::move(e));
    }
    total.seconds += SecondsOf(part);
  }
  const ShardRun& run = parts[0].run;
  if (!options.overwrite && HoldsResults(options.out)) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     options.out +
                         ": holds results already; give --overwrite to replace them, or " +
                         "another --out");
  }
  ResultsFolder folder(options.out, run.whole, ExistingResults::kOverwrite);
  try {
    CopyVideos(parts, options.out, episodes);
    for (const auto& [index, episode] : episodes) total.episodes.push_back(episode);
    total.videos = VideosIn(options.out, episodes);
    folder.Adopt(episodes);
    folder.Finish(SummaryText(run.whole, MeasuresOf(episodes), episodes, total));
  } catch (...) {
    folder.Discard();
    throw;
  }
  const std::string& name = parts[0].folder;
  return {Summarise(episodes, MeasuresOf(episodes)), TaskOf(run.whole, name), run.episodes,
          KnowsWeightsAlone(run.whole, name)};
}

}  // namespace mjp::app
