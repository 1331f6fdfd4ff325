#ifndef BASE_DATA_FOLDERS_H_
#define BASE_DATA_FOLDERS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace mjp {

// Where files of `kind` ("models", "assets") may lie, best first: the folder that MJPOLICY_MODELS
// or MJPOLICY_ASSETS names, share/mjpolicy of the installation this code was loaded from, the
// source tree it was built in, the prefix it was built for.
std::vector<std::filesystem::path> DataFolders(const std::string& kind);

}  // namespace mjp

#endif  // BASE_DATA_FOLDERS_H_
