#ifndef TASKS_RESULTS_SHARD_RESULTS_H_
#define TASKS_RESULTS_SHARD_RESULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/results/episode.h"
#include "tasks/results/shard.h"

// The files of one shard of an evaluation, parsed without trust.

namespace mjp::app {

// What a shard's run.json says, as far as merging needs it.
struct ShardRun {
  Shard shard;
  int episodes = 0;   // of the whole evaluation
  uint32_t seed = 0;  // of the whole evaluation's first episode
  std::string whole;  // run.json as if the evaluation had not been shared

  // Episodes of this shard.
  int Count() const { return (episodes - shard.index + shard.count - 1) / shard.count; }
};

// The run.json of the evaluation in `folder`. Throws BadInput, with what to do, where there is
// none.
std::string ReadRunIn(const std::string& folder);

// Parses the text of a run.json. `file` names it in the Error that is thrown if it is none.
ShardRun ParseShardRun(const std::string& text, const std::string& file);

// Parses the text of the episodes.jsonl beside that run.json, some of its episodes or all. Throws
// Error where one is not of this evaluation and shard, or has another seed. With `torn_tail` a last
// line without a newline is dropped instead of refused. `file` names it.
std::vector<EpisodeResult> ParseEpisodesOf(const ShardRun& run, const std::string& text,
                                           bool torn_tail, const std::string& file);

// The same for the two files in `folder`.
std::vector<EpisodeResult> ReadEpisodesIn(const std::string& folder, bool torn_tail);

// Parses the text of a shard's episodes.jsonl: episodes of this shard only, with their seeds, and
// each of them; with `partial` some may be missing and the last line may be torn. Throws Error that
// names what is odd in `file`.
std::vector<EpisodeResult> ParseShardEpisodes(const std::string& text, const ShardRun& run,
                                              bool partial, const std::string& file);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_SHARD_RESULTS_H_
