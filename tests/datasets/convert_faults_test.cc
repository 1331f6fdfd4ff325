// Sources of `convert` that are damaged on purpose: each refusal names the file, what is wrong with
// it and what to do, and the destination is none that looks whole. A fault that somebody meets is a
// row.

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "base/error.h"
#include "datasets/convert/convert.h"
#include "datasets/dataset.h"
#include "tests/support/files_below.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zarr_files.h"

namespace mjp::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class ConvertFaultsTest : public ::testing::Test {
 protected:
  ConvertFaultsTest() { mjp_test::WriteZarr(folder_, "zarr"); }

  std::string File(const std::string& name) const { return folder_ / ("zarr/" + name); }
  // Replaces the first `from` in a file of the source.
  void Replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = Text(File(name));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << name << " has no " << from;
    folder_.Write("zarr/" + name, text.replace(at, from.size(), to));
  }
  // Puts `value` in the place of the number `index` of a chunk.
  template <class T>
  void Set(const std::string& name, size_t index, T value) const {
    std::string bytes = Text(File(name));
    std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
    folder_.Write("zarr/" + name, bytes);
  }
  std::string Said(const std::string& task = "t", bool video = false) const {
    const ConvertOptions options{.source = folder_ / "zarr",
                                 .destination = folder_ / "set",
                                 .task = task,
                                 .fps = 10,
                                 .state = {},
                                 .video = video,
                                 .progress = {}};
    try {
      Convert(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput) << error.what();
      return error.what();
    }
    return "nothing";
  }

  const mjp_test::TempDir folder_;
};

TEST_F(ConvertFaultsTest, AreAllRefused) {
  const float nan = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  const std::string action = "data/action/.zarray", numbers = "data/action/0.0",
                    ends = "meta/episode_ends/0";
  struct Row {
    const char* name;
    std::function<void()> damage;
    std::vector<std::string> said;
  };
  const Row rows[] = {
      {"a chunk is lost",
       [&] { fs::remove(File(numbers)); },
       {numbers, "is missing", "copy the array again"}},
      {"a chunk is cut",
       [&] { fs::resize_file(File(numbers), 50); },
       {numbers, "has 50 bytes", "120", "copy the array again"}},
      {"a chunk is empty", [&] { fs::resize_file(File(numbers), 0); }, {numbers, "has 0 bytes"}},
      {"a chunk is longer",
       [&] { fs::resize_file(File(numbers), 121); },
       {numbers, "has 121 bytes"}},
      {"a chunk is a folder",
       [&] {
         fs::remove(File(numbers));
         fs::create_directory(File(numbers));
       },
       {numbers}},
      {"the description of an array is lost",
       [&] { fs::remove(File(action)); },
       {action, "is missing", "copy the array again"}},
      {"it is cut", [&] { fs::resize_file(File(action), 20); }, {action, "parse error"}},
      {"it is empty", [&] { fs::resize_file(File(action), 0); }, {action}},
      {"it is no object", [&] { folder_.Write("zarr/" + action, "[]"); }, {action}},
      {"numbers of another order", [&] { Replace(action, "<f4", ">f4"); }, {action, "dtype"}},
      {"complex numbers", [&] { Replace(action, "<f4", "<c8"); }, {action, "dtype"}},
      {"columns first", [&] { Replace(action, "\"C\"", "\"F\""); }, {action, "order"}},
      {"a codec that is none",
       [&] { Replace(action, "\"compressor\":null", "\"compressor\":{\"id\":\"lzma\"}"); },
       {action, "compressor", "lzma", "blosc"}},
      {"bytes that are not compressed",
       [&] { Replace(action, "\"compressor\":null", "\"compressor\":{\"id\":\"zlib\"}"); },
       {numbers, "damaged"}},
      {"a filter",
       [&] { Replace(action, "\"filters\":null", "\"filters\":[{\"id\":\"delta\"}]"); },
       {action, "filters"}},
      {"another version",
       [&] { Replace(action, "\"zarr_format\":2", "\"zarr_format\":3"); },
       {action, "zarr_format"}},
      {"fewer rows",
       [&] { Replace(action, "\"shape\":[15,", "\"shape\":[14,"); },
       {"data/action", "14 rows", "15", "copy both again"}},
      {"no rows",
       [&] { Replace(action, "\"shape\":[15,", "\"shape\":[0,"); },
       {"data/action", "0 rows"}},
      {"chunks of nothing",
       [&] { Replace(action, "\"chunks\":[15,2]", "\"chunks\":[15,0]"); },
       {action, "chunks"}},
      {"rows without end",
       [&] { Replace(action, "\"shape\":[15,", "\"shape\":[1000000000000,"); },
       {action, "shape"}},
      {"an episode without frames",
       [&] { Set<int64_t>(ends, 1, 4); },
       {"meta/episode_ends", "episode 1 has no frames"}},
      {"ends out of order", [&] { Set<int64_t>(ends, 0, 10); }, {"meta/episode_ends"}},
      {"an end before the beginning", [&] { Set<int64_t>(ends, 0, -4); }, {"meta/episode_ends"}},
      {"an end beyond the rows", [&] { Set<int64_t>(ends, 2, 16); }, {"15 rows", "16"}},
      {"rows beyond the last end", [&] { Set<int64_t>(ends, 2, 14); }, {"15 rows", "14"}},
      {"no ends", [&] { fs::remove_all(File("meta")); }, {"meta/episode_ends"}},
      {"a number that is none",
       [&] { Set(numbers, 20, nan); },
       {"episode 2", "\"action\"", "not finite"}},
      {"a number without end",
       [&] { Set("data/state/0.0", 0, infinite); },
       {"episode 0", "\"observation.state\"", "not finite"}},
      {"a number that no float32 is",
       [&] {
         std::vector<double> values(30);
         values[20] = 1e300;
         Replace(action, "<f4", "<f8");
         folder_.Write("zarr/" + numbers, {reinterpret_cast<const char*>(values.data()), 240});
       },
       {"episode 2, frame 1", "\"action\"", "1e+300", "beyond float32", "another unit"}},
      {"a whole number that no double is",
       [&] {
         std::vector<int64_t> values(30);
         values[20] = (int64_t{1} << 53) + 1;
         Replace(action, "<f4", "<i8");
         folder_.Write("zarr/" + numbers, {reinterpret_cast<const char*>(values.data()), 240});
       },
       {"episode 2, frame 1", "\"action\"", "beyond 2^53 - 1", "write it as float64", "in a copy"}},
      {"no group", [&] { fs::remove(File(".zgroup")); }, {"no data set that is known"}},
      {"no arrays", [&] { fs::remove_all(File("data")); }, {"data"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    fs::remove_all(folder_ / "zarr");
    fs::remove_all(folder_ / "set");
    mjp_test::WriteZarr(folder_, "zarr");
    row.damage();
    const std::string said = Said();
    EXPECT_THAT(said, HasSubstr(folder_ / "zarr"));
    for (const std::string& text : row.said) EXPECT_THAT(said, HasSubstr(text));
    if (fs::exists(folder_ / "set/meta/info.json")) {
      EXPECT_LT(Dataset(folder_ / "set").episodes().size(), 3u) << "looks whole";
    }
  }
}

TEST_F(ConvertFaultsTest, AnIntegerThatNoDoubleIsLeavesNothingThatKeepsItsCopyOut) {
  std::vector<int64_t> values(30);
  values[29] = int64_t{1} << 53;
  Replace("data/action/.zarray", "<f4", "<i8");
  folder_.Write("zarr/data/action/0.0", {reinterpret_cast<const char*>(values.data()), 240});
  EXPECT_THAT(Said(), HasSubstr("episode 2, frame 5: \"action\" has an integer beyond 2^53 - 1"));
  EXPECT_FALSE(fs::exists(folder_ / "set"));
  const std::vector<double> copy(values.begin(), values.end());
  Replace("data/action/.zarray", "<i8", "<f8");
  folder_.Write("zarr/data/action/0.0", {reinterpret_cast<const char*>(copy.data()), 240});
  EXPECT_EQ(Said(), "nothing");
  EXPECT_EQ(Dataset(folder_ / "set").episodes().size(), 3u);
}

// the same command goes on with its own source alone, and with that to the same end
TEST_F(ConvertFaultsTest, GoesOnWithTheSameNumbersAlone) {
  ASSERT_EQ(Said(), "nothing");
  EXPECT_EQ(Said(), "nothing");
  const auto before = mjp_test::FilesBelow(folder_ / "set");
  EXPECT_THAT(Said("other"), HasSubstr("episode 0: its task is not that of"));
  Set("data/action/0.0", 29, 3.0f);  // the last frame's second number
  EXPECT_THAT(Said(), HasSubstr("episode 2: \"action\" is not that of"));
  mjp_test::WriteZarr(folder_, "zarr", 1);
  EXPECT_THAT(Said(), HasSubstr("episode 0: \"observation.state\" is not that of"));
  EXPECT_EQ(mjp_test::FilesBelow(folder_ / "set"), before);
}

TEST_F(ConvertFaultsTest, GoesOnWithTheSamePicturesAlone) {
  for (const bool video : {false, true}) {
    SCOPED_TRACE(video ? "video" : "images");
    fs::remove_all(folder_ / "set");
    mjp_test::WriteZarr(folder_, "zarr", 0, 10);
    ASSERT_EQ(Said("t", video), "nothing");
    EXPECT_EQ(Said("t", video), "nothing");
    mjp_test::WriteZarr(folder_, "zarr", 0, 200);
    EXPECT_THAT(Said("t", video), HasSubstr("episode 0: \"observation.image\" is not that of"));
  }
}

}  // namespace
}  // namespace mjp::datasets
