#include "base/data_folders.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/program/own_program.h"

namespace mjp {

namespace fs = std::filesystem;

std::vector<fs::path> DataFolders(const std::string& kind) {
  std::vector<fs::path> folders;
  std::string variable = "MJPOLICY_" + kind;
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return std::toupper(c); });
  if (const char* folder = std::getenv(variable.c_str())) folders.emplace_back(folder);
  // <prefix>/bin/program, <prefix>/lib/library, <prefix>/lib/mujoco_plugin/library
  const fs::path folder = FindOwnBinary().parent_path();
  for (const fs::path& prefix : {folder.parent_path(), folder.parent_path().parent_path()}) {
    const fs::path share = prefix / "share" / "mjpolicy" / kind;
    std::error_code code;
    if (fs::is_directory(share, code)) folders.push_back(share);
  }
  folders.push_back(fs::path(MJPOLICY_SOURCE_DATA) / kind);
  folders.push_back(fs::path(MJPOLICY_INSTALLED_DATA) / kind);
  return folders;
}

}  // namespace mjp
