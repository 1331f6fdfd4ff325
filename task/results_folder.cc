#include "task/results_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kernels/error.h"

namespace pusht {
namespace {

constexpr size_t kLogLimit = size_t{1} << 30;  // bytes of episodes.jsonl that are read back

dp::Error Failure(const std::string& what, const std::string& file) {
  return dp::BadInput(file + ": " + what + ": " + std::strerror(errno));
}

void WriteAll(int fd, const std::string& text, const std::string& file) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Failure("cannot write", file);
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd) != 0 && errno != EINVAL) throw Failure("cannot make durable", file);
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

}  // namespace

ResultsFolder::ResultsFolder(const std::string& path, const std::string& run,
                             ExistingResults existing)
    : path_(path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) throw dp::BadInput(path + ": cannot create the folder: " + code.message());
  Lock();
  const std::string run_file = path + "/run.json", log_file = path + "/episodes.jsonl";
  const bool exists = std::filesystem::exists(run_file) || std::filesystem::exists(log_file);
  if (exists && existing == ExistingResults::kRefuse) {
    throw dp::Error(dp::ExitCode::kUsage, path +
                                              ": holds results already; give --resume to go on, "
                                              "--overwrite to start anew, or another --out");
  }
  if (exists && existing == ExistingResults::kResume) {
    const std::string there = ReadFile(run_file, 1 << 20);
    if (there != run) {
      throw dp::BadInput(run_file + ": these results are of another evaluation (" +
                         FirstDifference(there, run) + "); give another --out");
    }
    ReadFinished();
  } else {
    std::filesystem::remove(log_file, code);
    std::filesystem::remove(path + "/eval_info.json", code);
    WriteFileAtomically(run_file, run);
  }
  // a torn last line is cut off before anything is appended
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(log_file, text);
  log_fd_ = ::open(log_file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (log_fd_ < 0) throw Failure("cannot open", log_file);
}

ResultsFolder::~ResultsFolder() {
  if (log_fd_ >= 0) ::close(log_fd_);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void ResultsFolder::Lock() {
  const std::string file = path_ + "/.lock";
  lock_fd_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_fd_ < 0) throw Failure("cannot open", file);
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    throw dp::Error(dp::ExitCode::kUsage,
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
  WriteAll(log_fd_, ToJsonLine(episode) + "\n", path_ + "/episodes.jsonl");
  finished_[episode.index] = episode;
}

void ResultsFolder::Finish(const std::string& summary) {
  std::string text;
  for (const auto& [index, episode] : finished_) text += ToJsonLine(episode) + "\n";
  WriteFileAtomically(path_ + "/episodes.jsonl", text);
  WriteFileAtomically(path_ + "/eval_info.json", summary);
}

std::vector<EpisodeResult> ReadEpisodes(const std::string& file, bool torn_tail) {
  const std::string text = ReadFile(file, kLogLimit);
  std::vector<EpisodeResult> episodes;
  std::map<int, size_t> seen;
  size_t begin = 0, number = 1;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      if (torn_tail) break;
      throw dp::BadInput(file + ": the last line is torn; resume that evaluation first");
    }
    try {
      episodes.push_back(EpisodeFromJson(text.substr(begin, end - begin)));
    } catch (const dp::Error& error) {
      throw dp::BadInput(file + ":" + std::to_string(number) + ": " + error.what());
    }
    if (!seen.emplace(episodes.back().index, number).second) {
      throw dp::BadInput(file + ":" + std::to_string(number) + ": episode " +
                         std::to_string(episodes.back().index) + " stands twice");
    }
    begin = end + 1;
    ++number;
  }
  return episodes;
}

void WriteFileAtomically(const std::string& file, const std::string& text) {
  const std::string temporary = file + ".tmp." + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) throw Failure("cannot create", temporary);
  try {
    WriteAll(fd, text, temporary);
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  ::close(fd);
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    ::unlink(temporary.c_str());
    throw Failure("cannot replace", file);
  }
}

std::string ReadFile(const std::string& file, size_t limit) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw Failure("cannot open", file);
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw dp::BadInput(file + ": not a regular file");
  }
  if (static_cast<size_t>(info.st_size) > limit) {
    ::close(fd);
    throw dp::BadInput(file + ": larger than " + std::to_string(limit) + " bytes");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::read(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  ::close(fd);
  text.resize(done);
  return text;
}

}  // namespace pusht
