#ifndef TASKS_EVALUATION_PROGRAM_H_
#define TASKS_EVALUATION_PROGRAM_H_

#include <functional>

namespace mjp::app {

// The frame of a program's main: runs `body` and returns its exit code, or that of the exception
// it ends with, which is printed after the program's `name`. Warnings of the physics engine go to
// the standard error instead of a file in the working folder; an error of the engine, which cannot
// be survived, ends the program with ExitCode::kEnvironment. Output that could not be written is
// ExitCode::kBadInput, unless its reader has gone.
int RunProgram(const char* name, const std::function<int()>& body);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_PROGRAM_H_
