#include "tasks/evaluation/results_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace mjp::app {
namespace {

// Removes the films of an evaluation that is started anew.
void RemoveFilms(const std::string& folder) {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/videos", code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("eval_episode_")) std::filesystem::remove(entry.path(), code);
  }
}

}  // namespace

ResultsFolder::ResultsFolder(const std::string& path, const std::string& run,
                             ExistingResults existing)
    : path_(path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw mjp::BadInput(path + ": cannot create the folder: " + code.message());
  Lock();
  const std::string run_file = path + "/run.json", log_file = path + "/episodes.jsonl";
  const bool exists = std::filesystem::exists(run_file) || std::filesystem::exists(log_file);
  if (exists && existing == ExistingResults::kRefuse) {
    throw mjp::Error(mjp::ExitCode::kUsage, path +
                                                ": holds results already; give --resume to go on, "
                                                "--overwrite to start anew, or another --out");
  }
  if (exists && existing == ExistingResults::kResume) {
    const std::string there = ReadFile(run_file, 1 << 20);
    if (there != run) {
      throw mjp::BadInput(run_file + ": these results are of another evaluation (" +
                          FirstDifference(there, run) + "); give another --out");
    }
    ReadFinished();
  } else {
    std::filesystem::remove(log_file, code);
    std::filesystem::remove(path + "/eval_info.json", code);
    RemoveFilms(path);
    WriteFileAtomically(run_file, run);
  }
  // a torn last line is cut off before anything is appended
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(log_file, text);
  log_ = mjp::FileDescriptor(::open(log_file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (log_.get() < 0) throw mjp::FileError("cannot open", log_file);
}

void ResultsFolder::Lock() {
  const std::string file = path_ + "/.lock";
  lock_ = mjp::FileDescriptor(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (lock_.get() < 0) throw mjp::FileError("cannot open", file);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw mjp::Error(mjp::ExitCode::kUsage,
                     path_ + ": another evaluation is writing here; give another --out");
  }
}

void ResultsFolder::ReadFinished() {
  const std::string file = path_ + "/episodes.jsonl";
  if (!std::filesystem::exists(file)) return;
  for (EpisodeResult& episode : ReadEpisodes(file, true)) {
    const int index = episode.index;
    finished_[index] = std::move(episode);
  }
}

void ResultsFolder::Append(const EpisodeResult& episode) {
  WriteDurably(log_.get(), ToJsonLine(episode) + "\n", path_ + "/episodes.jsonl");
  finished_[episode.index] = episode;
}

void ResultsFolder::Finish(const std::string& summary) {
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(path_ + "/episodes.jsonl", text);
  WriteFileAtomically(path_ + "/eval_info.json", summary);
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

std::vector<std::string> FilmsIn(const std::string& folder,
                                 const std::map<int, EpisodeResult>& episodes) {
  std::vector<std::string> films;
  for (const auto& [index, episode] : episodes) {
    const std::string stem = folder + "/videos/eval_episode_" + std::to_string(index);
    for (const char* suffix : {".mp4", ".avi"}) {
      if (std::filesystem::exists(stem + suffix)) films.push_back(stem + suffix);
    }
  }
  return films;
}

std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t line_start = 0, i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) {
    if (a[i] == '\n') line_start = i + 1;
    ++i;
  }
  const auto line = [line_start](const std::string& s) {
    return s.substr(std::min(line_start, s.size()), s.find('\n', line_start) - line_start);
  };
  return "there '" + line(a) + "', here '" + line(b) + "'";
}

}  // namespace mjp::app
