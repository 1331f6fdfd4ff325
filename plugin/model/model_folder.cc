#include "plugin/model/model_folder.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <system_error>

#include "base/fork.h"

namespace mjp {
namespace {

namespace fs = std::filesystem;

struct Named {
  ForkMutex mutex;
  fs::path folder;  // empty: no host has named one
};

// never destroyed, as its lock wants it
Named& TheNamed() {
  static Named& named = *new Named;
  return named;
}

bool HasModel(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".xml") return true;
  }
  return false;
}

// Assets lie beside the MJCF or in meshdir and the like, a few folders below it.
fs::path FolderAbove(const fs::path& asset) {
  constexpr int kMostAbove = 4;
  std::error_code error;
  fs::path folder = fs::absolute(asset, error).lexically_normal().parent_path();
  for (int i = 0; i < kMostAbove && folder.has_relative_path(); ++i) {
    if (HasModel(folder)) return folder;
    folder = folder.parent_path();
  }
  return {};
}

}  // namespace

void SetModelFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path absolute = folder.empty() ? folder : fs::absolute(folder, error);
  const std::lock_guard lock(TheNamed().mutex);
  TheNamed().folder = absolute;
}

std::vector<fs::path> ModelFolders(const mjModel* model) {
  std::vector<fs::path> folders;
  {
    const std::lock_guard lock(TheNamed().mutex);
    if (!TheNamed().folder.empty()) folders.push_back(TheNamed().folder);
  }
  const char* end = model->paths + model->npaths;
  for (const char* path = model->paths; path < end; path = std::find(path, end, '\0') + 1) {
    if (*path == '\0') continue;
    const fs::path folder = FolderAbove(path);
    if (!folder.empty() && std::ranges::find(folders, folder) == folders.end()) {
      folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace mjp
