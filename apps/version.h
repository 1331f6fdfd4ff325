#ifndef APPS_VERSION_H_
#define APPS_VERSION_H_

#include <string>

namespace mjp::app {

// Versions of the project, MuJoCo, the compiler and CUDA, one per line.
std::string VersionText();

// The project's version, "0.1.0+<commit>" where the commit was known at configure time.
std::string ProjectVersion();

}  // namespace mjp::app

#endif  // APPS_VERSION_H_
