#ifndef BASE_ERROR_H_
#define BASE_ERROR_H_

#include <stdexcept>
#include <string>

namespace mjp {

// Exit codes of every program of this project.
enum class ExitCode {
  kOk = 0,
  kUsage = 1,        // wrong arguments
  kBadInput = 2,     // a file that is missing, malformed or unusable
  kEnvironment = 3,  // no GPU, no EGL, no library that was asked for by name
  kPartial = 4,      // some episodes are invalid or missing
  kRegression = 5,   // a comparison found a regression
  kRetryable = 75,   // a fault of the GPU: start the same command again
};

// The one exception of the project. The text says what is wrong, where, and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The GPU has no room for what was asked; a smaller batch may fit.
class OutOfDeviceMemory : public Error {
 public:
  explicit OutOfDeviceMemory(const std::string& text) : Error(ExitCode::kEnvironment, text) {}
};

inline Error BadInput(const std::string& text) { return Error(ExitCode::kBadInput, text); }
inline Error Unsupported(const std::string& text) { return Error(ExitCode::kBadInput, text); }
inline Error EnvironmentError(const std::string& text) {
  return Error(ExitCode::kEnvironment, text);
}

}  // namespace mjp

#endif  // BASE_ERROR_H_
