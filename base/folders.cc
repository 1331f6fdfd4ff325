#include "base/folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

namespace mjp::app {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Whether `name` ends in `mark` and the number of a process.
bool IsLeftover(const std::string& name, const std::string& mark) {
  const size_t at = name.rfind(mark);
  if (at == std::string::npos || at + mark.size() == name.size()) return false;
  return name.find_first_not_of("0123456789", at + mark.size()) == std::string::npos;
}

}  // namespace

void WriteDurably(int fd, const std::string& text, const std::string& file) {
  mjp::WriteDurably(fd, BytesOf(text), file);
}

void WriteFileAtomically(const std::string& file, const std::string& text) {
  mjp::WriteFileAtomically(file, BytesOf(text));
}

std::string ReadFile(const std::string& file, size_t limit) {
  const std::vector<uint8_t> bytes = mjp::ReadFile(file, limit);
  return {bytes.begin(), bytes.end()};
}

void CheckWritable(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path(file);
  if (path.filename().empty() || std::filesystem::is_directory(path, error)) {
    throw mjp::BadInput(file + ": is a folder; name a file in it");
  }
  const std::string trial = mjp::FollowLinks(file) + ".try" + std::to_string(::getpid());
  const mjp::FileDescriptor fd(::open(trial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0) throw mjp::FileError("cannot create", file);
  ::unlink(trial.c_str());
}

void RemoveLeftovers(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code none;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    const bool directory = entry.is_directory(none);
    if (directory ? name.starts_with(".unfinished") && IsLeftover(name, ".unfinished")
                  : IsLeftover(name, ".tmp")) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) fs::remove_all(path, none);
}

mjp::FileDescriptor LockFolder(const std::string& folder, const std::string& work) {
  const std::string file = folder + "/.lock";
  mjp::FileDescriptor lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (lock.get() < 0) throw mjp::FileError("cannot open", file);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) {
    const mjp::Error error = mjp::FileError("cannot lock", file);
    throw mjp::Error(error.code(), std::string(error.what()) +
                                       "; give a folder on a file system that has locks, or mount "
                                       "this one with them (Lustre: the option flock)");
  }
  throw mjp::Error(mjp::ExitCode::kUsage,
                   folder + ": another " + work + " is writing here; give another --out");
}

}  // namespace mjp::app
