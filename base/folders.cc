#include "base/folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

namespace mjp::app {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
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
  const std::string trial = file + ".try" + std::to_string(::getpid());
  const mjp::FileDescriptor fd(::open(trial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0) throw mjp::FileError("cannot create", file);
  ::unlink(trial.c_str());
}

mjp::FileDescriptor LockFolder(const std::string& folder, const std::string& work) {
  const std::string file = folder + "/.lock";
  mjp::FileDescriptor lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (lock.get() < 0) throw mjp::FileError("cannot open", file);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  throw mjp::Error(mjp::ExitCode::kUsage,
                   folder + ": another " + work + " is writing here; give another --out");
}

}  // namespace mjp::app
