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

int64_t ModifiedAt(const struct stat& status) {
  return status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec;
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

Error Changed(const std::string& path) {
  return BadInput(path + ": changed while it was read; try again when its writer has finished");
}

// Writes the new file `temporary` and forces it to the disk. `path` names it in errors.
void CreateDurably(const std::string& temporary, std::span<const uint8_t> bytes,
                   const std::string& path) {
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) throw FileError("cannot create", path);
  WriteDurably(file.get(), bytes, path);
  if (file.Close() != 0) throw FileError("cannot write", path);
}

// Renames a file that is on the disk, and waits until the folder is, too.
void Rename(const std::string& from, const std::string& to) {
  struct stat old {};
  if (stat(to.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) {
    unlink(from.c_str());
    throw BadInput(to + ": is a device or a pipe, which no file replaces; name another file");
  }
  if (rename(from.c_str(), to.c_str()) != 0) {
    const Error error = FileError("cannot replace", to);
    unlink(from.c_str());
    throw error;
  }
  const std::filesystem::path parent = std::filesystem::path(to).parent_path();
  const FileDescriptor folder(
      open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) fsync(folder.get());
}

}  // namespace

int FileDescriptor::Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

Error FileError(const std::string& what, const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return BadInput(path + ": " + what + ": " + std::strerror(errno) +
                  (full ? "; free some, or name another place" : ""));
}

void WriteAll(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw FileError("cannot write", path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void WriteDurably(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  WriteAll(fd, bytes, path);
  // EINVAL: a file system that cannot wait for its disk
  if (fsync(fd) != 0 && errno != EINVAL) throw FileError("cannot make durable", path);
}

RegularFile::RegularFile(std::string path, uint64_t limit) : path_(std::move(path)) {
  // non-blocking, so that a FIFO without a writer is refused instead of waited for
  file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file_.get() < 0) throw FileError("cannot open", path_);
  const struct stat status = Status(file_.get(), path_);
  if (!S_ISREG(status.st_mode)) throw BadInput(path_ + ": is not a regular file");
  size_ = static_cast<uint64_t>(status.st_size);
  modified_ = ModifiedAt(status);
  if (size_ > limit) {
    throw BadInput(path_ + ": has " + std::to_string(size_) + " bytes, more than the " +
                   std::to_string(limit) + " this kind of file may have");
  }
}

void RegularFile::Read(uint64_t count, std::vector<uint8_t>& out) {
  const size_t old_size = out.size();
  out.resize(old_size + count);
  if (ReadUpTo(file_.get(), path_, out.data() + old_size, count) != count) throw Changed(path_);
}

std::vector<uint8_t> RegularFile::ReadAt(uint64_t offset, uint64_t count) const {
  if (offset > size_ || count > size_ - offset) {
    throw BadInput(path_ + ": ends at byte " + std::to_string(size_) + ", before byte " +
                   std::to_string(offset) + " + " + std::to_string(count) + ", which it refers to");
  }
  std::vector<uint8_t> bytes(count);
  for (uint64_t done = 0; done < count;) {
    const ssize_t got =
        pread(file_.get(), bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("cannot read", path_);
    if (got == 0) throw Changed(path_);
    done += static_cast<uint64_t>(got);
  }
  return bytes;
}

void RegularFile::CheckUnchanged() const {
  const struct stat now = Status(file_.get(), path_);
  if (static_cast<uint64_t>(now.st_size) != size_ || ModifiedAt(now) != modified_) {
    throw Changed(path_);
  }
}

std::vector<uint8_t> ReadFile(const std::string& path, uint64_t limit) {
  RegularFile file(path, limit);
  std::vector<uint8_t> bytes;
  file.Read(file.size(), bytes);
  file.CheckUnchanged();
  return bytes;
}

std::string FollowLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system
  std::filesystem::path file(path);
  std::error_code none;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(file, none); ++i)
    file = file.parent_path() / std::filesystem::read_symlink(file, none);
  return file.string();
}

void WriteFileAtomically(const std::string& name, std::span<const uint8_t> bytes) {
  const std::string path = FollowLinks(name);
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  try {
    CreateDurably(temporary, bytes, path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  Rename(temporary, path);
}

void RenameDurably(const std::string& from, const std::string& to) {
  try {
    FileDescriptor file(open(from.c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0) throw FileError("cannot open", from);
    WriteDurably(file.get(), {}, to);
  } catch (...) {
    unlink(from.c_str());
    throw;
  }
  Rename(from, to);
}

}  // namespace mjp
