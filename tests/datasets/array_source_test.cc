// What a conversion asks of a source of arrays.

#include "datasets/convert/array_source.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/datasets/recorded_set.h"
#include "tests/support/temp_dir.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kFrames = 50;

// Three episodes whose state is of two arrays, and an array of integers.
class Source : public ArraySource {
 public:
  const char* layout() const override { return "made up"; }
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  int64_t episodes() const override { return 3; }
  int64_t Length(int64_t) override { return kFrames; }
  std::vector<double> Read(int64_t episode, const SourceArray& array, int64_t first,
                           int64_t count) override {
    most = std::max(most, count);
    const int64_t width = array.shape.front();
    std::vector<double> values(static_cast<size_t>(count * width));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<double>(first * width + static_cast<int64_t>(i));
      values[i] = at + static_cast<double>(100 * episode);
    }
    const int64_t row = frame - first;
    if (array.name == changed && episode == 1 && row >= 0 && row < count)
      values[static_cast<size_t>(row * width)] = std::ldexp(1, 60);
    return values;
  }
  std::vector<std::string> DefaultState() const override { return {"arm", "hand"}; }

  int64_t most = 0;     // frames that were read at once
  std::string changed;  // the array whose number of frame `frame` of episode 1 is another
  int64_t frame = 40;

 private:
  const std::vector<SourceArray> arrays_ = {
      {"arm", {3}, "float32"}, {"hand", {2}, "float32"}, {"depth", {6}, "int64"}};
};

class ArraySourceTest : public ::testing::Test {
 protected:
  std::string Said() {
    try {
      ConvertArrays(source_, options_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput) << error.what();
      return error.what();
    }
    return "nothing";
  }

  const mjp_test::TempDir folder_;
  Source source_;
  ConvertOptions options_{.source = "made up",
                          .destination = folder_ / "set",
                          .task = "t",
                          .fps = 10,
                          .state = {},
                          .video = false,
                          .progress = {}};
};

// an episode of depth maps is larger than memory, and than what HDF5 reads at once
TEST_F(ArraySourceTest, IsNeverAskedForAWholeEpisode) {
  ASSERT_EQ(Said(), "nothing");
  EXPECT_LE(source_.most, 16);
  EXPECT_EQ(Said(), "nothing");  // compared with itself
  EXPECT_LE(source_.most, 16);
  Dataset dataset(folder_ / "set");
  for (const std::string& problem : Check(dataset, {}).problems) ADD_FAILURE() << problem;
  EXPECT_EQ(dataset.info().frames, 3 * kFrames);
}

TEST_F(ArraySourceTest, WhatIsOtherIsFoundInEachPartOfAnEpisode) {
  for (const int64_t frame : {15, 16, 49}) {
    fs::remove_all(folder_ / "set");
    source_.frame = frame;
    source_.changed = "depth";
    EXPECT_THAT(Said(), HasSubstr("episode 1, frame " + std::to_string(frame) +
                                  ": \"depth\" has an integer beyond 2^53 - 1"));
    EXPECT_FALSE(fs::exists(folder_ / "set"));
    source_.changed = "";
    ASSERT_EQ(Said(), "nothing");
    source_.changed = "hand";
    EXPECT_THAT(Said(), HasSubstr("episode 1: \"observation.state\" is not that of made up"));
  }
}

TEST_F(ArraySourceTest, StopsWhileIntegersAreLookedAt) {
  std::ofstream(folder_ / "array.hdf5");  // Convert wants a file
  int asked = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, 0);
    EXPECT_EQ(total, 3);
    return ++asked < 2;
  };
  EXPECT_THROW(ConvertArrays(source_, options_), StoppedComparison);
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(fs::exists(folder_ / "set"));
}

}  // namespace
}  // namespace mjp::datasets
