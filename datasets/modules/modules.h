#ifndef DATASETS_MODULES_MODULES_H_
#define DATASETS_MODULES_MODULES_H_

#include <string>

namespace mjp::datasets {

// The address of `symbol` in one of our libraries ("mjpolicy_video") that is opened at need, from
// the build or from lib/mjpolicy of the installation. Throws EnvironmentError with `remedy` where
// it cannot be opened.
void* ModuleSymbol(const std::string& library, const char* symbol, const std::string& remedy);

}  // namespace mjp::datasets

#endif  // DATASETS_MODULES_MODULES_H_
