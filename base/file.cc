#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace mjp {
namespace {

struct stat Status(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw FileError("cannot look at the file", path);
  return status;
}

bool SameVersion(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Reads until `size` bytes or the end of the file; returns how many came.
size_t ReadUpTo(int fd, const std::string& path, uint8_t* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, out + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("cannot read", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

// Writes a new file and forces it to the disk.
void CreateDurably(const std::string& path, std::span<const uint8_t> bytes) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) throw FileError("cannot create", path);
  WriteDurably(file.get(), bytes, path);
  if (file.Close() != 0) throw FileError("cannot write", path);
}

}  // namespace

int FileDescriptor::Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

Error FileError(const std::string& what, const std::string& path) {
  return BadInput(path + ": " + what + ": " + std::strerror(errno));
}

void WriteDurably(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw FileError("cannot write", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  // EINVAL: a file system that cannot wait for its disk
  if (fsync(fd) != 0 && errno != EINVAL) throw FileError("cannot make durable", path);
}

std::vector<uint8_t> ReadFile(const std::string& path, uint64_t limit) {
  // non-blocking, so that a FIFO without a writer is refused instead of waited for
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw FileError("cannot open", path);
  const struct stat before = Status(file.get(), path);
  if (!S_ISREG(before.st_mode)) throw BadInput(path + ": is not a regular file");
  const auto size = static_cast<uint64_t>(before.st_size);
  if (size > limit) {
    throw BadInput(path + ": has " + std::to_string(size) + " bytes, more than the " +
                   std::to_string(limit) + " this kind of file may have");
  }
  std::vector<uint8_t> bytes(size);
  const size_t got = ReadUpTo(file.get(), path, bytes.data(), bytes.size());
  if (got != size || !SameVersion(before, Status(file.get(), path))) {
    throw BadInput(path + ": changed while it was read; try again when its writer has finished");
  }
  return bytes;
}

void WriteFileAtomically(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  try {
    CreateDurably(temporary, bytes);
    if (rename(temporary.c_str(), path.c_str()) != 0) throw FileError("cannot replace", path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  // the rename itself lasts once the folder is on the disk
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const FileDescriptor folder(
      open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) fsync(folder.get());
}

}  // namespace mjp
