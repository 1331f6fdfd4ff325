#include "task/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pusht {

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
  const std::string temporary = file + ".tmp." + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) throw FileError("cannot create", temporary);
  try {
    WriteDurably(fd, text, temporary);
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  ::close(fd);
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    const dp::Error error = FileError("cannot replace", file);
    ::unlink(temporary.c_str());
    throw error;
  }
}

std::string ReadFile(const std::string& file, size_t limit) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw FileError("cannot open", file);
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
    if (n <= 0) {
      const dp::Error error = n < 0 ? FileError("cannot read", file)
                                    : dp::BadInput(file + ": became shorter while it was read");
      ::close(fd);
      throw error;
    }
    done += static_cast<size_t>(n);
  }
  ::close(fd);
  return text;
}

}  // namespace pusht
