#ifndef TESTS_SUPPORT_SHARED_DATA_H_
#define TESTS_SUPPORT_SHARED_DATA_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace mjp_test {

// Path of a file of the reference data that stands beside the project (folder `shared`, or the
// environment variable MJPOLICY_SHARED), or "" where it is absent. Throws where the variable names
// no folder: a test that was to compare would only be skipped.
inline std::string SharedPath(const std::string& relative) {
  const char* env = std::getenv("MJPOLICY_SHARED");
  if (env != nullptr && !std::filesystem::is_directory(env))
    throw std::runtime_error(std::string("MJPOLICY_SHARED is \"") + env +
                             "\", which is no folder: name the reference data's, or unset it");
  const std::string root = env ? env : std::string(MJPOLICY_SOURCE_DIR) + "/../shared";
  const std::string path = root + "/" + relative;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace mjp_test

// Declares `var` as the path of a reference file, or skips the test and says which file it lacks.
#define SHARED_OR_SKIP(var, relative)                     \
  const std::string var = mjp_test::SharedPath(relative); \
  if (var.empty()) GTEST_SKIP() << "reference data absent: shared/" << (relative)

#endif  // TESTS_SUPPORT_SHARED_DATA_H_
