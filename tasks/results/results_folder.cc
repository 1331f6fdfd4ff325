#include "tasks/results/results_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/key_reader.h"
#include "tasks/recording/video_container.h"
#include "tasks/results/run_differences.h"
#include "tasks/results/shard_results.h"

namespace mjp::app {
namespace {

// The videos of episodes in `folder`, of whoever made them.
std::vector<std::string> EpisodeVideosIn(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> videos;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/videos", code)) {
    const bool named = entry.path().filename().string().starts_with("eval_episode_");
    if (named && entry.is_regular_file(code)) videos.push_back(entry.path().string());
  }
  return videos;
}

// Removes what a killed encoder left; it may have come late.
void RemoveUnfinished(const std::string& folder) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/videos", code)) {
    if (IsUnfinishedVideo(entry.path().filename().string())) {
      std::filesystem::remove(entry.path(), code);
    }
  }
}

// Removes also videos that cannot be played to their end, and, of an evaluation that is started
// anew, the videos of the one before.
void RemoveVideos(const std::string& folder, bool all) {
  RemoveUnfinished(folder);
  std::error_code code;
  for (const std::string& video : EpisodeVideosIn(folder)) {
    if (all || !VideoFault(video).empty()) std::filesystem::remove(video, code);
  }
}

std::string RunFile(const std::string& folder) { return folder + "/run.json"; }
std::string LogFile(const std::string& folder) { return folder + "/episodes.jsonl"; }
std::string SummaryFile(const std::string& folder) { return folder + "/eval_info.json"; }

// Throws Error unless `folder` holds results of `run`.
void CheckSameRun(const std::string& folder, const std::string& run) {
  const std::string file = RunFile(folder);
  if (!std::filesystem::exists(file)) {
    throw mjp::BadInput(folder +
                        ": holds results without a run.json, which are of another program " +
                        "or not whole; give another --out");
  }
  const auto differences = RunDifferences(ReadFile(file, kRunLimit), file, run, "this evaluation");
  if (differences.empty()) return;
  throw mjp::BadInput(file + ": these results are of another evaluation: " + WasAndIs(differences) +
                      "; go on with what it was, or give another --out");
}

}  // namespace

bool HoldsResults(const std::string& folder) {
  return std::filesystem::exists(RunFile(folder)) || std::filesystem::exists(LogFile(folder)) ||
         std::filesystem::exists(SummaryFile(folder)) || !EpisodeVideosIn(folder).empty();
}

ResultsFolder::ResultsFolder(const std::string& path, const std::string& run,
                             ExistingResults existing)
    : path_(path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw mjp::BadInput(path + ": cannot create the folder: " + code.message());
  lock_ = LockFolder(path, "evaluation");
  const bool exists = HoldsResults(path);
  if (exists && existing == ExistingResults::kRefuse) {
    throw mjp::Error(mjp::ExitCode::kUsage, path +
                                                ": holds results already; give --resume to go on, "
                                                "--overwrite to start anew, or another --out");
  }
  const bool resumed = exists && existing == ExistingResults::kResume;
  if (resumed) {
    CheckSameRun(path, run);
    ReadFinished();
  } else {
    std::filesystem::remove(LogFile(path), code);
    std::filesystem::remove(SummaryFile(path), code);
  }
  RemoveVideos(path, !resumed);
  if (!resumed) WriteFileAtomically(RunFile(path), run);
  // a torn last line is cut off before anything is appended
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(LogFile(path), text);
  log_ = mjp::FileDescriptor(::open(LogFile(path).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (log_.get() < 0) throw mjp::FileError("cannot open", LogFile(path));
}

void ResultsFolder::ReadFinished() {
  if (!std::filesystem::exists(LogFile(path_))) return;
  for (EpisodeResult& episode : ReadEpisodesIn(path_, true)) {
    const int index = episode.index;
    finished_[index] = std::move(episode);
  }
}

void ResultsFolder::Append(const EpisodeResult& episode) {
  if (torn_) {
    throw mjp::BadInput(LogFile(path_) +
                        ": an episode before this one could not be written; give evaluate "
                        "--resume, which goes on from what is whole");
  }
  torn_ = true;  // until it is known
  WriteDurably(log_.get(), ToJsonLine(episode) + "\n", LogFile(path_));
  torn_ = false;
  finished_[episode.index] = episode;
}

void ResultsFolder::Finish(const std::string& summary) {
  RemoveUnfinished(path_);
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(LogFile(path_), text);
  WriteFileAtomically(SummaryFile(path_), summary);
}

void ResultsFolder::Discard() {
  std::error_code code;
  std::filesystem::remove(SummaryFile(path_), code);
  std::filesystem::remove(LogFile(path_), code);
  std::filesystem::remove(RunFile(path_), code);
  RemoveVideos(path_, true);
}

std::optional<std::map<int, EpisodeResult>> CompleteResults(const std::string& folder,
                                                            const std::string& run,
                                                            const std::vector<int>& indices) {
  if (!std::filesystem::exists(RunFile(folder)) || !std::filesystem::exists(SummaryFile(folder))) {
    return std::nullopt;
  }
  CheckSameRun(folder, run);
  if (!std::filesystem::exists(LogFile(folder))) return std::nullopt;
  std::map<int, EpisodeResult> episodes;
  for (EpisodeResult& episode : ReadEpisodesIn(folder, true)) {
    const int index = episode.index;
    episodes.emplace(index, std::move(episode));
  }
  for (const int index : indices) {
    if (!episodes.contains(index)) return std::nullopt;
  }
  const Json summary = ReadSummary(SummaryFile(folder));
  const Json& parts = mjp::KeyReader(summary, SummaryFile(folder)).Required("overall");
  mjp::KeyReader overall(parts, SummaryFile(folder) + ": overall");
  const Json& videos = overall.Required("video_paths");
  const int count = overall.Int("n_episodes", 0, std::numeric_limits<int>::max());
  const bool same = static_cast<size_t>(count) == episodes.size() && videos.is_array() &&
                    videos.size() == VideosIn(folder, episodes).size();
  if (!same) return std::nullopt;
  return episodes;
}

Json ReadSummary(const std::string& file) {
  try {
    return mjp::ReadJson(file, {kLogLimit, 16});
  } catch (const mjp::Error& error) {
    throw mjp::Error(error.code(), std::string(error.what()) +
                                       "; delete the file and give evaluate --resume, which makes "
                                       "it of the episodes");
  }
}

std::vector<EpisodeResult> ReadEpisodes(const std::string& file, bool torn_tail) {
  return ParseEpisodes(ReadFile(file, kLogLimit), torn_tail, file);
}

std::vector<EpisodeResult> ParseEpisodes(const std::string& text, bool torn_tail,
                                         const std::string& file) {
  std::vector<EpisodeResult> episodes;
  std::map<int, size_t> seen;
  size_t begin = 0, number = 1;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      if (torn_tail) break;
      throw mjp::BadInput(file + ": the last line is torn; resume that evaluation first");
    }
    try {
      episodes.push_back(EpisodeFromJson(text.substr(begin, end - begin)));
    } catch (const mjp::Error& error) {
      throw mjp::BadInput(file + ":" + std::to_string(number) + ": " + error.what());
    }
    if (!seen.emplace(episodes.back().index, number).second) {
      throw mjp::BadInput(file + ":" + std::to_string(number) + ": episode " +
                          std::to_string(episodes.back().index) + " stands twice");
    }
    begin = end + 1;
    ++number;
  }
  return episodes;
}

std::vector<std::string> VideosIn(const std::string& folder,
                                  const std::map<int, EpisodeResult>& episodes) {
  std::vector<std::string> videos;
  for (const auto& [index, episode] : episodes) {
    const std::string stem = folder + "/videos/eval_episode_" + std::to_string(index);
    for (const char* suffix : {".mp4", ".avi"}) {
      if (!std::filesystem::exists(stem + suffix)) continue;
      if (VideoFault(stem + suffix).empty()) videos.push_back(stem + suffix);
    }
  }
  return videos;
}

}  // namespace mjp::app
