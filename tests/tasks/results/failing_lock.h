#ifndef TESTS_TASKS_RESULTS_FAILING_LOCK_H_
#define TESTS_TASKS_RESULTS_FAILING_LOCK_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

// Locks fail as on a file system that has none. For one source file of a program, whose flock it is
// instead of the C library's.

namespace mjp_test {

inline bool locks_fail = false;

}  // namespace mjp_test

extern "C" int flock(int fd, int operation) {
  if (!mjp_test::locks_fail) return static_cast<int>(syscall(SYS_flock, fd, operation));
  errno = ENOSYS;
  return -1;
}

#endif  // TESTS_TASKS_RESULTS_FAILING_LOCK_H_
