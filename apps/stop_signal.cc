#include "apps/stop_signal.h"

#include <csignal>

namespace mjp::app {
namespace {

std::atomic<bool> stop{false};
std::atomic<int> stop_signal{0};

void OnSignal(int number) {
  std::signal(number, SIG_DFL);
  stop_signal = number;
  stop = true;
}

}  // namespace

const std::atomic<bool>& StopOnSignal() {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  // the terminal is gone, unless nohup has said that it does not matter
  if (std::signal(SIGHUP, OnSignal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  return stop;
}

int StoppedExitCode() { return 128 + stop_signal; }

}  // namespace mjp::app
