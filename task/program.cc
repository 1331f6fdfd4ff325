#include "task/program.h"

#include <mujoco/mujoco.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "kernels/error.h"

namespace pusht {
namespace {

const char* program = "";

void OnEngineWarning(const char* text) {
  std::fprintf(stderr, "%s: warning: MuJoCo: %s\n", program, text);
}

void OnEngineError(const char* text) {
  std::fprintf(stderr, "%s: error: MuJoCo: %s\n", program, text);
  std::_Exit(static_cast<int>(dp::ExitCode::kEnvironment));
}

// Prints the exception that is being handled and returns the exit code for it.
int ReportException() {
  try {
    throw;
  } catch (const dp::Error& error) {
    std::fprintf(stderr, "%s: error: %s\n", program, error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: error: there is no memory left; free some, or ask for less\n",
                 program);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: error: %s\n", program, error.what());
  }
  return static_cast<int>(dp::ExitCode::kEnvironment);
}

// An exception that cannot be passed on, as where a JSON value's destructor finds no memory.
void OnTerminate() {
  if (std::current_exception()) std::_Exit(ReportException());
  std::abort();
}

}  // namespace

int RunProgram(const char* name, const std::function<int()>& body) {
  program = name;
  std::set_terminate(OnTerminate);
  mju_user_warning = OnEngineWarning;
  mju_user_error = OnEngineError;
  // a closed pipe is an error of that write, not the end of the program
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return body();
  } catch (...) {
    return ReportException();
  }
}

}  // namespace pusht
