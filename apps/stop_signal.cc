#include "apps/stop_signal.h"

#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>

namespace mjp::app {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> stop_signal{0};
std::atomic<int64_t> stopped_at{0};  // in ms
std::atomic<const char*> last_words{nullptr};

int64_t Milliseconds() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

void OnSignal(int number) {
  if (!stop) {
    stop_signal = number;
    stopped_at = Milliseconds();
    stop = true;
  } else if (Milliseconds() - stopped_at >= kSameSignal) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // comes when this handler ends
  }
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
