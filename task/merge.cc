#include "task/merge.h"

#include <filesystem>

#include "kernels/error.h"
#include "policy/json.h"
#include "task/results_folder.h"
#include "task/shard.h"

namespace pusht {
namespace {

namespace fs = std::filesystem;

// One folder as its run.json describes it.
struct Part {
  std::string folder;
  Shard shard;
  std::string whole;  // run.json as if the evaluation had not been shared
  EvaluationOptions evaluation;
};

Part ReadPart(const std::string& folder) {
  const std::string file = folder + "/run.json";
  dp::Json run = dp::ReadJson(file);
  try {
    Part part{folder, ParseShard(run.at("shard").get<std::string>()), "", {}};
    part.evaluation.episodes = run.at("episodes").get<int>();
    part.evaluation.seed = run.at("seed").get<uint32_t>();
    run["shard"] = ToString(Shard());
    part.whole = run.dump(1) + "\n";
    return part;
  } catch (const std::exception& error) {
    throw dp::BadInput(file + ": is not the run.json of an evaluation: " + error.what());
  }
}

std::vector<Part> ReadParts(const MergeOptions& options) {
  std::vector<Part> parts;
  std::map<int, std::string> seen;
  for (const std::string& folder : options.folders) {
    std::error_code none;
    if (fs::equivalent(folder, options.out, none)) {
      throw dp::Error(dp::ExitCode::kUsage, "--out " + options.out + " is one of the shards");
    }
    Part part = ReadPart(folder);
    if (!parts.empty() && part.whole != parts[0].whole) {
      throw dp::BadInput(folder + ": is of another evaluation than " + parts[0].folder + " (" +
                         FirstDifference(parts[0].whole, part.whole) + ")");
    }
    if (!parts.empty() && part.shard.count != parts[0].shard.count) {
      throw dp::BadInput(folder + ": is shard " + ToString(part.shard) + ", but " +
                         parts[0].folder + " is shard " + ToString(parts[0].shard));
    }
    const auto [other, fresh] = seen.emplace(part.shard.index, folder);
    if (!fresh) {
      throw dp::BadInput(folder + " and " + other->second + " are both shard " +
                         ToString(part.shard));
    }
    parts.push_back(std::move(part));
  }
  for (int i = 0; i < parts[0].shard.count && !options.partial; ++i) {
    if (seen.contains(i)) continue;
    throw dp::Error(dp::ExitCode::kPartial, "shard " + ToString({i, parts[0].shard.count}) +
                                                " is missing; --partial merges what is there");
  }
  return parts;
}

// The episodes of one shard, each checked to be one of its own.
void AddEpisodes(const Part& part, bool partial, std::map<int, EpisodeResult>& episodes) {
  const std::string file = part.folder + "/episodes.jsonl";
  const size_t before = episodes.size();
  for (EpisodeResult& e : ReadEpisodes(file, partial)) {
    const std::string name = file + ": episode " + std::to_string(e.index);
    if (e.index < 0 || e.index >= part.evaluation.episodes) {
      throw dp::BadInput(name + " is not one of the evaluation's " +
                         std::to_string(part.evaluation.episodes));
    }
    if (e.index % part.shard.count != part.shard.index) {
      throw dp::BadInput(name + " does not belong to shard " + ToString(part.shard));
    }
    if (e.seed != part.evaluation.seed + static_cast<uint32_t>(e.index)) {
      throw dp::BadInput(name + " has seed " + std::to_string(e.seed) + ", expected " +
                         std::to_string(part.evaluation.seed + static_cast<uint32_t>(e.index)));
    }
    const int index = e.index;
    episodes.emplace(index, std::move(e));
  }
  EvaluationOptions evaluation = part.evaluation;
  evaluation.shard_index = part.shard.index;
  evaluation.shard_count = part.shard.count;
  for (const int index : ShardIndices(evaluation)) {
    if (partial || episodes.contains(index)) continue;
    throw dp::Error(dp::ExitCode::kPartial,
                    file + ": has " + std::to_string(episodes.size() - before) + " episodes; " +
                        std::to_string(index) +
                        " is the first that is missing; go on with that shard with --resume, or "
                        "merge what is there with --partial");
  }
}

// Copies the films of every shard to the folder of the result.
void CopyFilms(const std::vector<Part>& parts, const std::string& out,
               const std::map<int, EpisodeResult>& episodes) {
  for (const Part& part : parts) {
    for (const std::string& film : FilmsIn(part.folder, episodes)) {
      const fs::path target = fs::path(out) / "videos" / fs::path(film).filename();
      std::error_code code;
      fs::create_directories(target.parent_path(), code);
      fs::copy_file(film, target, fs::copy_options::overwrite_existing, code);
      if (code) throw dp::BadInput(target.string() + ": cannot copy the film: " + code.message());
    }
  }
}

// Wall time of a shard as its summary has it, seconds; 0 if it has not come to that.
double SecondsOf(const Part& part) {
  const std::string file = part.folder + "/eval_info.json";
  if (!fs::exists(file)) return 0;
  constexpr dp::JsonLimits kLimits{size_t{1} << 30, 16};
  try {
    return dp::ReadJson(file, kLimits).at("overall").at("eval_s").get<double>();
  } catch (const nlohmann::json::exception& error) {
    throw dp::BadInput(file + ": is not the summary of an evaluation: " + error.what());
  }
}

}  // namespace

MergeResult Merge(const MergeOptions& options) {
  const std::vector<Part> parts = ReadParts(options);
  std::map<int, EpisodeResult> episodes;
  EvaluationResult total;
  for (const Part& part : parts) {
    AddEpisodes(part, options.partial, episodes);
    total.seconds += SecondsOf(part);
  }
  ResultsFolder folder(options.out, parts[0].whole,
                       options.overwrite ? ExistingResults::kOverwrite : ExistingResults::kRefuse);
  CopyFilms(parts, options.out, episodes);
  for (const auto& [index, episode] : episodes) total.episodes.push_back(episode);
  total.videos = FilmsIn(options.out, episodes);
  folder.Adopt(episodes);
  folder.Finish(SummaryText(parts[0].evaluation, parts[0].whole, episodes, total));
  return {Summarise(episodes), parts[0].evaluation.episodes};
}

}  // namespace pusht
