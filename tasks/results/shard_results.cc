#include "tasks/results/shard_results.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "tasks/results/results_folder.h"

namespace mjp::app {

ShardRun ParseShardRun(const std::string& text, const std::string& file) {
  mjp::Json json = mjp::ParseJson(text, file);
  mjp::KeyReader keys(json, file + ": is not the run.json of an evaluation");
  ShardRun run;
  try {
    run.shard = ParseShard(keys.Text("shard"));
  } catch (const mjp::Error& error) {
    throw mjp::BadInput(file + ": " + error.what());
  }
  run.episodes = keys.Int("episodes", 1, 10000000);
  run.seed = keys.Uint32("seed");
  json["shard"] = ToString(Shard());
  run.whole = JsonText(json, 1) + "\n";
  return run;
}

std::vector<EpisodeResult> ParseEpisodesOf(const ShardRun& run, const std::string& text,
                                           bool torn_tail, const std::string& file) {
  std::vector<EpisodeResult> episodes = ParseEpisodes(text, torn_tail, file);
  for (const EpisodeResult& e : episodes) {
    const std::string name = file + ": episode " + std::to_string(e.index);
    const uint32_t seed = run.seed + static_cast<uint32_t>(e.index);
    if (e.index >= run.episodes) {
      throw mjp::BadInput(name + " is not one of the evaluation's " + std::to_string(run.episodes));
    }
    if (e.index % run.shard.count != run.shard.index) {
      throw mjp::BadInput(name + " does not belong to shard " + ToString(run.shard));
    }
    if (e.seed != seed) {
      throw mjp::BadInput(name + " has seed " + std::to_string(e.seed) + ", expected " +
                          std::to_string(seed));
    }
  }
  return episodes;
}

std::string ReadRunIn(const std::string& folder) {
  const std::string run = folder + "/run.json";
  if (std::filesystem::exists(run)) return ReadFile(run, kRunLimit);
  throw mjp::BadInput(folder +
                      ": there is no evaluation in it (run.json); name the folder that mjpolicy "
                      "evaluate --out wrote");
}

std::vector<EpisodeResult> ReadEpisodesIn(const std::string& folder, bool torn_tail) {
  const std::string log = folder + "/episodes.jsonl";
  const ShardRun run = ParseShardRun(ReadRunIn(folder), folder + "/run.json");
  return ParseEpisodesOf(run, ReadFile(log, kLogLimit), torn_tail, log);
}

std::vector<EpisodeResult> ParseShardEpisodes(const std::string& text, const ShardRun& run,
                                              bool partial, const std::string& file) {
  std::vector<EpisodeResult> episodes = ParseEpisodesOf(run, text, partial, file);
  std::set<int> present;
  for (const EpisodeResult& e : episodes) present.insert(e.index);
  for (int64_t i = run.shard.index; i < run.episodes && !partial; i += run.shard.count) {
    if (present.contains(static_cast<int>(i))) continue;
    throw mjp::Error(mjp::ExitCode::kPartial,
                     file + ": has " + std::to_string(episodes.size()) + " episodes; " +
                         std::to_string(i) +
                         " is the first that is missing; go on with that shard with --resume, or "
                         "merge what is there with --partial");
  }
  return episodes;
}

}  // namespace mjp::app
