#ifndef TASKS_RESULTS_RESULTS_FOLDER_H_
#define TASKS_RESULTS_RESULTS_FOLDER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/folders.h"
#include "base/json_forward.h"
#include "tasks/results/episode.h"

namespace mjp::app {

// What to do where the folder already holds results.
enum class ExistingResults { kRefuse, kResume, kOverwrite };

// The folder one evaluation writes: run.json (what is evaluated), episodes.jsonl (one durable line
// per finished episode), eval_info.json (the summary, at the end). One writer at a time.
class ResultsFolder {
 public:
  // Creates or opens `path`. `run` is the text that identifies the evaluation (everything results
  // depend on); resuming a folder of another run is an Error that says what differs. Torn videos
  // and those of a killed encoder are removed.
  ResultsFolder(const std::string& path, const std::string& run, ExistingResults existing);

  // Episodes found at the start when resuming, by index. A torn last line is dropped.
  const std::map<int, EpisodeResult>& finished() const { return finished_; }

  // Appends one episode and makes it durable. Throws Error if it cannot be written, and for each
  // further one then: behind a torn line none could be read.
  void Append(const EpisodeResult& episode);

  // Takes over episodes that are durable elsewhere; Finish writes them.
  void Adopt(const std::map<int, EpisodeResult>& episodes) { finished_ = episodes; }

  // Rewrites episodes.jsonl in the order of the indices and writes eval_info.json, both atomically.
  void Finish(const std::string& summary);

  // Leaves no results behind, after an error.
  void Discard();

  const std::string& path() const { return path_; }

 private:
  void ReadFinished();

  std::string path_;
  mjp::FileDescriptor lock_, log_;
  std::map<int, EpisodeResult> finished_;
  bool torn_ = false;  // the log's last line
};

// Whether there are results, complete or not, or videos of episodes, also of another program.
bool HoldsResults(const std::string& folder);

// The episodes of complete results of `run`: each of `indices`, the summary, and the videos that it
// lists. Nothing where something is still to be done. Writes nothing. Throws Error if the results
// are of another run or cannot be read.
std::optional<std::map<int, EpisodeResult>> CompleteResults(const std::string& folder,
                                                            const std::string& run,
                                                            const std::vector<int>& indices);

constexpr size_t kRunLimit = size_t{1} << 20;  // bytes of run.json that are read

// Bytes of episodes.jsonl that are read back.
constexpr size_t kLogLimit = size_t{1} << 30;

// Reads an eval_info.json. Throws Error, with the way to a new one, where it is damaged.
Json ReadSummary(const std::string& file);

// Reads episodes.jsonl strictly: every line must parse and indices must be distinct. With
// `torn_tail` a last line without a newline is dropped instead of refused.
std::vector<EpisodeResult> ReadEpisodes(const std::string& file, bool torn_tail);

// The same for its text; `file` names it in errors.
std::vector<EpisodeResult> ParseEpisodes(const std::string& text, bool torn_tail,
                                         const std::string& file);

// The videos in `folder`/videos of these episodes that can be played to their end, in the order of
// the indices.
std::vector<std::string> VideosIn(const std::string& folder,
                                  const std::map<int, EpisodeResult>& episodes);

}  // namespace mjp::app

#endif  // TASKS_RESULTS_RESULTS_FOLDER_H_
