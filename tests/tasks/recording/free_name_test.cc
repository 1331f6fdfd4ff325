#include "tasks/recording/free_name.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

std::string Content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Write(const std::string& stem, const std::string& text) {
  return WriteToFreeName(stem, ".txt",
                         {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

TEST(FreeName, NumbersWhatCameLater) {
  const mjp_test::TempDir folder;
  const std::string stem = folder / "video";
  EXPECT_EQ(Write(stem, "first"), stem + ".txt");
  EXPECT_EQ(Write(stem, "second"), stem + "-2.txt");
  fs::create_directory(stem + "-3.txt");  // whatever has the name
  EXPECT_EQ(Write(stem, "third"), stem + "-4.txt");
  fs::remove(stem + ".txt");
  EXPECT_EQ(Write(stem, "fourth"), stem + ".txt");
  EXPECT_EQ(Content(stem + ".txt"), "fourth");
  EXPECT_EQ(Content(stem + "-2.txt"), "second");
  EXPECT_EQ(Content(stem + "-4.txt"), "third");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 4);
}

TEST(FreeName, NobodyReplacesAnothersFile) {
  constexpr int kWriters = 4, kFiles = 25;
  const mjp_test::TempDir folder;
  std::vector<std::vector<std::string>> names(kWriters);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < kFiles; ++i) {
        const std::string text = std::to_string(w) + " " + std::to_string(i);
        const std::string part = folder.Write("part" + std::to_string(w), text);
        names[w].push_back(RenameToFreeName(part, folder / "video", ".mp4"));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::set<std::string> all;
  for (int w = 0; w < kWriters; ++w) {
    for (int i = 0; i < kFiles; ++i) {
      EXPECT_TRUE(all.insert(names[w][i]).second) << names[w][i];
      EXPECT_EQ(Content(names[w][i]), std::to_string(w) + " " + std::to_string(i));
    }
  }
}

TEST(FreeName, LeavesNothingWhereItFails) {
  const mjp_test::TempDir folder;
  EXPECT_THROW(Write(folder / "absent/video", "text"), mjp::Error);
  const std::string part = folder.Write("part", "text");
  EXPECT_THROW(RenameToFreeName(part, folder / "absent/video", ".mp4"), mjp::Error);
  EXPECT_THROW(RenameToFreeName(folder / "nowhere", folder / "video", ".mp4"), mjp::Error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace mjp::app
