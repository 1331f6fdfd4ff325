#ifndef TASK_PNG_H_
#define TASK_PNG_H_

#include <string>

#include "task/video.h"

namespace pusht {

// Writes `picture` as a PNG, whole or not at all. Throws Error if it cannot be written.
void WritePng(const std::string& path, const Picture& picture);

}  // namespace pusht

#endif  // TASK_PNG_H_
