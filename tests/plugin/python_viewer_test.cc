// MuJoCo's viewer for Python as a host. Needs a Python that has the package mujoco 4.0.1: its path
// in PUSHT_TEST_PYTHON; and Xvfb.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "policy/checkpoint_writer.h"
#include "tests/support/golden_cases.h"
#include "tests/support/temp_dir.h"

namespace pusht_test {
namespace {

TEST(PythonViewerTest, PlaysPausesResetsAndGoesBack) {
  const char* python = std::getenv("PUSHT_TEST_PYTHON");
  if (!python) GTEST_SKIP() << "PUSHT_TEST_PYTHON names no Python with the package mujoco";
  const TempDir folder;
  dp::WriteCheckpoint(folder / "pusht_image", *CompactCheckpoint(), dp::WeightFormat::kF16);
  const std::string command = "PUSHT_ASSETS=" + folder.path() + " " + python + " " +
                              PUSHT_SOURCE_DIR "/tests/plugin/python_viewer.py " PLUGIN_LIBRARY
                                               " " +
                              PUSHT_SOURCE_DIR "/models/pusht_policy.xml 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << output;
  std::printf("%s", output.c_str());
}

}  // namespace
}  // namespace pusht_test
