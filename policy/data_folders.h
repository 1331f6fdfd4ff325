#ifndef POLICY_DATA_FOLDERS_H_
#define POLICY_DATA_FOLDERS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace dp {

// Where files of `kind` ("models", "assets") may lie, best first: the folder that PUSHT_MODELS or
// PUSHT_ASSETS names, share/diffusion_policy of the installation this code was loaded from, the
// source tree it was built in, the prefix it was built for.
std::vector<std::filesystem::path> DataFolders(const std::string& kind);

}  // namespace dp

#endif  // POLICY_DATA_FOLDERS_H_
