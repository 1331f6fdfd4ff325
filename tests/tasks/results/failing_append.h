#ifndef TESTS_TASKS_RESULTS_FAILING_APPEND_H_
#define TESTS_TASKS_RESULTS_FAILING_APPEND_H_

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

// One append to a log fails as where the disk is full for a moment: half of the line is there. For
// one source file of a program, whose write it is instead of the C library's.

namespace mjp_test {

inline std::atomic<long> appends_left{-1};  // until one fails; negative: none does

}  // namespace mjp_test

extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  std::atomic<long>& left = mjp_test::appends_left;
  const bool appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const bool fails = appends && left.load() >= 0 && left.fetch_sub(1) == 0;
  const ssize_t put = syscall(SYS_write, fd, bytes, fails ? size / 2 : size);
  if (!fails) return put;
  errno = ENOSPC;
  return -1;
}

#endif  // TESTS_TASKS_RESULTS_FAILING_APPEND_H_
