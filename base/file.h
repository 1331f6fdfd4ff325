#ifndef BASE_FILE_H_
#define BASE_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace mjp {

// An open file descriptor, closed at the end of its life.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  // Closes now, if anything is open: 0, or -1 with errno.
  int Close();

 private:
  int fd_ = -1;
};

// "<path>: <what>: <the system's reason>", from errno; of a full disk also what to do.
Error FileError(const std::string& what, const std::string& path);

// A regular file that is read in pieces, so that its beginning can be judged before the rest is
// read and has memory.
class RegularFile {
 public:
  // Throws Error if `path` cannot be opened or is not a regular file of at most `limit` bytes.
  RegularFile(std::string path, uint64_t limit);

  uint64_t size() const { return size_; }
  // The next `count` bytes, appended to `out`. Throws Error if the file has become shorter.
  void Read(uint64_t count, std::vector<uint8_t>& out);
  // The `count` bytes from `offset` on; the next Read is not moved. Throws Error if they are not
  // all within the size the file had when it was opened, or no longer there.
  std::vector<uint8_t> ReadAt(uint64_t offset, uint64_t count) const;
  // Throws Error if the file has changed since it was opened.
  void CheckUnchanged() const;

 private:
  std::string path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
  int64_t modified_ = 0;  // nanoseconds
};

// Reads a regular file whole into own memory. Throws Error if it is missing, not a regular file,
// larger than `limit` bytes, or changes while it is read.
std::vector<uint8_t> ReadFile(const std::string& path, uint64_t limit);

// Writes all of `bytes` to an open file. `path` names it in the Error that is thrown if that fails.
void WriteAll(int fd, std::span<const uint8_t> bytes, const std::string& path);

// The same, and waits until they are on the disk.
void WriteDurably(int fd, std::span<const uint8_t> bytes, const std::string& path);

// The file that `path` means: where symbolic links lead, also one that is not there yet. Of links
// that lead in a circle it is one of them.
std::string FollowLinks(const std::string& path);

// Replaces the file that `path` means (FollowLinks) so that readers, and a crash, see either the
// old file or all of the new one (temporary file, fsync, rename). Throws Error if that fails; no
// partial file remains.
void WriteFileAtomically(const std::string& path, std::span<const uint8_t> bytes);

// Gives a file that is on the disk whole another name in its folder, durably: waits for the content
// first. A symbolic link of that name is replaced. Throws Error if that fails; `from` is removed
// then.
void RenameDurably(const std::string& from, const std::string& to);

}  // namespace mjp

#endif  // BASE_FILE_H_
