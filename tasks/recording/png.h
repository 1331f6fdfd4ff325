#ifndef TASKS_RECORDING_PNG_H_
#define TASKS_RECORDING_PNG_H_

#include <string>

#include "tasks/recording/video.h"

namespace mjp::app {

// Writes `picture` as a PNG, whole or not at all. Throws Error if it cannot be written.
void WritePng(const std::string& path, const Picture& picture);

// The same as `<stem>.png`, or the next name that is free (tasks/recording/free_name.h), which is
// returned.
std::string WritePngToFreeName(const std::string& stem, const Picture& picture);

}  // namespace mjp::app

#endif  // TASKS_RECORDING_PNG_H_
