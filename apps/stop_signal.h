#ifndef APPS_STOP_SIGNAL_H_
#define APPS_STOP_SIGNAL_H_

#include <atomic>

namespace mjp::app {

// From now on SIGINT and SIGTERM ask the work to stop at its next safe point: the returned flag
// becomes true. A second signal ends the program at once.
const std::atomic<bool>& StopOnSignal();

// Exit code of a program that stopped for the signal: 130 or 143.
int StoppedExitCode();

}  // namespace mjp::app

#endif  // APPS_STOP_SIGNAL_H_
