#ifndef TESTS_SUPPORT_NPZ_H_
#define TESTS_SUPPORT_NPZ_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/npy.h"

namespace mjp_test {

// An array of NumPy's .npz file, which the program unzip opens.
inline mjp::app::NpyArray ReadNpz(const std::string& file, const std::string& array) {
  std::vector<uint8_t> bytes;
  FILE* pipe = popen(("unzip -p '" + file + "' '" + array + ".npy'").c_str(), "r");
  EXPECT_NE(pipe, nullptr) << "no program unzip";
  if (pipe != nullptr) {
    uint8_t part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, pipe)) > 0;) {
      bytes.insert(bytes.end(), part, part + got);
    }
    pclose(pipe);
  }
  return mjp::app::ParseNpy(bytes, file + ": " + array);
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_NPZ_H_
