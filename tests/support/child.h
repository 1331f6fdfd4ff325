#ifndef TESTS_SUPPORT_CHILD_H_
#define TESTS_SUPPORT_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

namespace mjp_test {

inline bool is_child = false;

// What `work` returns in a child made by fork(), or how that ended otherwise: a child that hangs is
// ended by its alarm. It ends by exit(), as a host does: handlers of libraries may hang as well.
inline std::string InChild(const std::function<std::string()>& work, unsigned seconds = 60) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    alarm(seconds);
    std::string result;
    try {
      result = work();
    } catch (const std::exception& error) {
      result = error.what();
    }
    const char* at = result.data();
    for (size_t left = result.size(); left > 0;) {
      const ssize_t n = write(ends[1], at, left);
      if (n <= 0) _exit(1);
      at += n;
      left -= static_cast<size_t>(n);
    }
    std::exit(0);
  }
  close(ends[1]);
  std::string result;
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    result.append(buffer.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return result;
}

}  // namespace mjp_test

#ifdef __SANITIZE_ADDRESS__
// LeakSanitizer asks this before it searches. A child has none of the stacks that held what its
// parent's threads were using, so all of that would be searched for and called a leak.
extern "C" [[gnu::used, gnu::visibility("default")]] inline int __lsan_is_turned_off() {
  return mjp_test::is_child ? 1 : 0;
}
#endif

#endif  // TESTS_SUPPORT_CHILD_H_
