#ifndef TASKS_EVALUATION_VERSION_H_
#define TASKS_EVALUATION_VERSION_H_

#include <string>

namespace mjp::app {

// Versions of the project, MuJoCo, the compiler and CUDA, one per line; the first begins with the
// name of the program.
std::string VersionText(const std::string& program = "mjpolicy");

// The project's version, "0.1.0+<commit>" where the commit was known at configure time.
std::string ProjectVersion();

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_VERSION_H_
