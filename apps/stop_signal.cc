#include "apps/stop_signal.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace mjp::app {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> stop_signal{0};
std::atomic<const char*> last_words{nullptr};

void OnSignal(int number) {
  std::signal(number, SIG_DFL);
  stop_signal = number;
  stop = true;
}

void EndOnSignal(int number) {
  const char* words = last_words;
  static_cast<void>(::write(STDERR_FILENO, words, std::strlen(words)) < 0);
  ::_exit(128 + number);
}

void Catch(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
  // the terminal is gone, unless nohup has said that it does not matter
  if (std::signal(SIGHUP, handler) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

}  // namespace

const std::atomic<bool>& StopOnSignal() {
  Catch(OnSignal);
  return stop;
}

void SayOnSignal(const char* words) {
  last_words = words;
  Catch(EndOnSignal);
}

int StoppedExitCode() { return 128 + stop_signal; }

}  // namespace mjp::app
