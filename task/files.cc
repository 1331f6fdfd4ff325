#include "task/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "policy/file.h"

namespace pusht {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

dp::Error FileError(const std::string& what, const std::string& file) {
  return dp::BadInput(file + ": " + what + ": " + std::strerror(errno));
}

void WriteDurably(int fd, const std::string& text, const std::string& file) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw FileError("cannot write", file);
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd) != 0 && errno != EINVAL) throw FileError("cannot make durable", file);
}

void WriteFileAtomically(const std::string& file, const std::string& text) {
  dp::WriteFileAtomically(file, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string ReadFile(const std::string& file, size_t limit) {
  const std::vector<uint8_t> bytes = dp::ReadFile(file, limit);
  return {bytes.begin(), bytes.end()};
}

}  // namespace pusht
