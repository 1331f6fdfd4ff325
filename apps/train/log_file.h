#ifndef APPS_TRAIN_LOG_FILE_H_
#define APPS_TRAIN_LOG_FILE_H_

#include <cstdint>
#include <string>

#include "base/file.h"

namespace mjp::app {

// A log of a run, a line for some steps: JSON, or CSV with a header.
class LogFile {
 public:
  // Goes on after step `step`: lines beyond it, of a run that was killed before it saved, go, and
  // so does a line that a full disk or a kill has torn. Without `header` the lines are JSON. Throws
  // Error where the file cannot be written.
  LogFile(const std::string& path, int64_t step, const std::string& header = "");

  // Adds a line, durably. Throws Error where it cannot be written.
  void Add(const std::string& line);

 private:
  std::string path_;
  mjp::FileDescriptor file_;
};

}  // namespace mjp::app

#endif  // APPS_TRAIN_LOG_FILE_H_
