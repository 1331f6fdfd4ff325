#ifndef APPS_STOP_SIGNAL_H_
#define APPS_STOP_SIGNAL_H_

#include <atomic>

namespace mjp::app {

// Signals within so many ms are one wish to stop: `timeout` signals the program, then its group.
inline constexpr int kSameSignal = 300;

// From now on SIGINT and SIGTERM ask the work to stop at its next safe point: the returned flag
// becomes true. A second wish to stop ends the program at once.
const std::atomic<bool>& StopOnSignal();

// From now on SIGINT and SIGTERM end the program at once with their exit code and these last words,
// a line on the standard error that lives as long as the program: of work that keeps nothing.
void SayOnSignal(const char* words);

// Exit code of a program that stopped for the signal: 130 or 143.
int StoppedExitCode();

}  // namespace mjp::app

#endif  // APPS_STOP_SIGNAL_H_
