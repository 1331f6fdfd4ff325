// mjpolicy dataset and mjpolicy convert as a user runs them.

#include <gmock/gmock.h>

#include <filesystem>
#include <vector>

#include "tests/datasets/recorded_set.h"
#include "tests/support/program.h"

namespace mjp::datasets {
namespace {

using mjp_test::Outcome;
using mjp_test::RunMjpolicy;
using ::testing::HasSubstr;

TEST(DatasetCommandTest, ShowsAndChecks) {
  const mjp_test::TempDir folder;
  {
    DatasetWriter writer(folder / "set", mjp_test::RecordedInfo("image"));
    for (int64_t episode = 0; episode < 2; ++episode) mjp_test::RecordEpisode(writer, episode);
    writer.Finish();
  }
  const Outcome sound = RunMjpolicy("dataset " + (folder / "set"));
  EXPECT_EQ(sound.code, 0) << sound.text;
  for (const char* text : {"2 episodes, 9 frames, 10 frames/s", "observation.images.top",
                           "64 x 96 x 3", "task 1: reach", "all numbers, files and pictures"}) {
    EXPECT_THAT(sound.text, HasSubstr(text));
  }
  std::filesystem::resize_file(folder / "set/data/chunk-000/file-000.parquet", 100);
  const Outcome cut = RunMjpolicy("dataset --quick " + (folder / "set"));
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.text, HasSubstr("problem: "));
  EXPECT_THAT(cut.text, HasSubstr("data/chunk-000/file-000.parquet"));
  EXPECT_EQ(RunMjpolicy("dataset /nowhere").code, 2);
  EXPECT_EQ(RunMjpolicy("dataset").code, 1);
}

// An array of a zarr folder in one chunk, without compression.
template <class T>
void PutZarr(const mjp_test::TempDir& folder, const std::string& name, const std::string& dtype,
             const std::string& shape, const std::vector<T>& values) {
  const bool flat = shape.find(',') == std::string::npos;
  std::filesystem::create_directories(folder / ("zarr/" + name));
  folder.Write("zarr/" + name + "/.zarray",
               R"({"zarr_format": 2, "compressor": null, "filters": null, "fill_value": 0, )"
               R"("order": "C", "dtype": ")" +
                   dtype + R"(", "shape": [)" + shape + R"(], "chunks": [)" + shape + "]}");
  folder.Write("zarr/" + name + (flat ? "/0" : "/0.0"),
               {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

TEST(DatasetCommandTest, Converts) {
  const mjp_test::TempDir folder;
  PutZarr<int64_t>(folder, "meta/episode_ends", "<i8", "2", {3, 8});
  PutZarr<float>(folder, "data/action", "<f4", "8, 2", std::vector<float>(16, 0.5f));
  PutZarr<float>(folder, "data/state", "<f4", "8, 5", std::vector<float>(40, 0.25f));
  folder.Write("zarr/.zgroup", R"({"zarr_format": 2})");
  const std::string arguments = "convert " + (folder / "zarr") + " " + (folder / "set");
  const Outcome incomplete = RunMjpolicy(arguments);
  EXPECT_EQ(incomplete.code, 1);
  EXPECT_THAT(incomplete.text, HasSubstr("give --task and --fps"));
  const Outcome whole = RunMjpolicy(arguments + " --task 'push the T' --fps 10");
  EXPECT_EQ(whole.code, 0) << whole.text;
  EXPECT_THAT(whole.text, HasSubstr("2 episodes, 8 frames (from zarr)"));
  EXPECT_EQ(RunMjpolicy("dataset " + (folder / "set")).code, 0);
  EXPECT_THAT(RunMjpolicy("convert --help").text, HasSubstr("Examples:"));
}

}  // namespace
}  // namespace mjp::datasets
