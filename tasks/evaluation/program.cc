#include "tasks/evaluation/program.h"

#include <fcntl.h>
#include <mujoco/mujoco.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "base/command_line/terminal.h"
#include "base/error.h"

namespace mjp::app {
namespace {

const char* program = "";

std::string Warning() { return mjp::Coloured(stderr, mjp::Colour::kYellow, "warning:"); }
std::string Failure() { return mjp::Coloured(stderr, mjp::Colour::kRed, "error:"); }

void OnEngineWarning(const char* text) {
  std::fprintf(stderr, "%s: %s MuJoCo: %s\n", program, Warning().c_str(), text);
}

void OnEngineError(const char* text) {
  std::fprintf(stderr, "%s: %s MuJoCo: %s\n", program, Failure().c_str(), text);
  std::_Exit(static_cast<int>(mjp::ExitCode::kEnvironment));
}

// libtorch appends its stack, in two ways.
std::string WithoutStack(std::string text) {
  for (const char* stack : {"\nException raised from", "\nframe #"}) {
    text.resize(std::min(text.find(stack), text.size()));
  }
  return text;
}

// Prints the exception that is being handled and returns the exit code for it.
int ReportException() {
  try {
    throw;
  } catch (const mjp::Error& error) {
    std::fprintf(stderr, "%s: %s %s\n", program, Failure().c_str(), error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: error: there is no memory left; free some, or ask for less\n",
                 program);
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "%s: %s %s\n", program, Failure().c_str(), error.what());
    return static_cast<int>(mjp::ExitCode::kBadInput);
  } catch (const std::exception& error) {
    const std::string text = WithoutStack(error.what());
    const bool exhausted = text.find("can't allocate memory") != std::string::npos;
    std::fprintf(stderr, "%s: %s %s%s\n", program, Failure().c_str(),
                 exhausted ? "there is no memory left; ask for less, such as fewer channels or a "
                             "smaller batch: "
                           : "",
                 text.c_str());
  }
  return static_cast<int>(mjp::ExitCode::kEnvironment);
}

// An exception that cannot be passed on, as where a JSON value's destructor finds no memory.
void OnTerminate() {
  if (std::current_exception()) std::_Exit(ReportException());
  std::abort();
}

// Gives closed standard streams a place, lest what is printed lands in a file opened later.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

// Whether whoever read the standard output has had enough of it.
bool ReaderIsGone() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// Throws Error where something printed did not arrive.
void FinishOutput() {
  const bool lost = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  if ((flushed && !lost) || ReaderIsGone()) return;
  throw mjp::BadInput(std::string("cannot write the standard output") +
                      (flushed ? "" : std::string(": ") + std::strerror(errno)));
}

}  // namespace

int RunProgram(const char* name, const std::function<int()>& body) {
  program = name;
  OpenStandardStreams();
  std::set_terminate(OnTerminate);
  mju_user_warning = OnEngineWarning;
  mju_user_error = OnEngineError;
  // a closed pipe or a file at its limit is an error of that write, not the end of the program
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = body();
    FinishOutput();
    return code;
  } catch (...) {
    return ReportException();
  }
}

}  // namespace mjp::app
