#ifndef TESTS_SUPPORT_FILES_BELOW_H_
#define TESTS_SUPPORT_FILES_BELOW_H_

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace mjp_test {

// Everything below `folder`: relative name -> content, "" of what is no file.
inline std::map<std::string, std::string> FilesBelow(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), folder).string()] =
        entry.is_regular_file() ? std::string(std::istreambuf_iterator<char>(file), {}) : "";
  }
  return files;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_FILES_BELOW_H_
