#include "base/data_folders.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/program/own_program.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

// The program or library that this code is part of, links followed; "" if unknown.
fs::path OwnBinary() {
  Dl_info info{};
  std::error_code code;
  if (::dladdr(reinterpret_cast<void*>(&OwnBinary), &info) == 0) return {};
  const fs::path file = fs::canonical(info.dli_fname, code);
  // a program found on PATH is known by its bare name
  return code ? FindOwnProgram() : file;
}

}  // namespace

std::vector<fs::path> DataFolders(const std::string& kind) {
  std::vector<fs::path> folders;
  std::string variable = "MJPOLICY_" + kind;
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return std::toupper(c); });
  if (const char* folder = std::getenv(variable.c_str())) folders.emplace_back(folder);
  // <prefix>/bin/program, <prefix>/lib/library, <prefix>/lib/mujoco_plugin/library
  const fs::path folder = OwnBinary().parent_path();
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
