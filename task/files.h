#ifndef TASK_FILES_H_
#define TASK_FILES_H_

#include <string>
#include <utility>

#include "kernels/error.h"

namespace pusht {

// An open file descriptor, closed at the end of its life.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// "<file>: <what>: <the system's reason>", from errno.
dp::Error FileError(const std::string& what, const std::string& file);

// Writes all of `text` to an open file and waits until it is on the disk. `file` names it in
// errors.
void WriteDurably(int fd, const std::string& text, const std::string& file);

// Text as policy/file.h writes it: as a whole or not at all.
void WriteFileAtomically(const std::string& file, const std::string& text);

// Text as policy/file.h reads it: a regular file of at most `limit` bytes.
std::string ReadFile(const std::string& file, size_t limit);

}  // namespace pusht

#endif  // TASK_FILES_H_
