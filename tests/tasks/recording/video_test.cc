#include "tasks/recording/video.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tasks/recording/video_container.h"
#include "tests/support/temp_dir.h"

namespace mjp::app {
namespace {

namespace fs = std::filesystem;

// Without ffmpeg on PATH, and with it where there is one.
class VideoTest : public ::testing::TestWithParam<bool> {
 protected:
  VideoTest() : path_(std::getenv("PATH")) {
    if (GetParam()) ::setenv("PATH", folder_.path().c_str(), 1);
  }
  ~VideoTest() override { ::setenv("PATH", path_.c_str(), 1); }

  // Writes `pictures` pictures that differ; returns the file.
  std::string Write(const std::string& name, int pictures) const {
    const auto writer = VideoWriter::Open(folder_ / name, 64, 48, 10);
    AddPictures(*writer, pictures);
    writer->Close();
    return writer->file();
  }
  static void AddPictures(VideoWriter& writer, int pictures) {
    for (int i = 0; i < pictures; ++i) {
      Picture picture(64, 48, static_cast<uint8_t>(20 * i));
      FillRectangle(picture, 3 * i, 5, 20, 20, {200, 30, 90});
      writer.Add(picture);
    }
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  const std::string path_;
  const mjp_test::TempDir folder_;
};

TEST_P(VideoTest, HasItsNameOnceItIsWhole) {
  const std::string stem = folder_ / "video";
  auto writer = VideoWriter::Open(stem, 64, 48, 10);
  EXPECT_EQ(writer->file(), stem + (GetParam() ? ".avi" : writer->file().substr(stem.size())));
  AddPictures(*writer, 7);
  EXPECT_FALSE(fs::exists(writer->file()));
  writer->Close();
  EXPECT_EQ(VideoFault(writer->file(), 7), "");
  EXPECT_EQ(VideoFault(writer->file(), 8), "it has 7 of 8 pictures");
  EXPECT_EQ(Files(), 1u);
}

TEST_P(VideoTest, LeavesNothingWhereItIsNotClosed) {
  AddPictures(*VideoWriter::Open(folder_ / "video", 64, 48, 10), 3);
  EXPECT_EQ(Files(), 0u);
}

TEST_P(VideoTest, EveryTruncationIsAFault) {
  const std::string file = Write("video", 5);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 0; size < whole.size(); size += size < 600 ? 1 : 37) {
    const std::string cut = folder_.Write("cut", whole.substr(0, size));
    EXPECT_NE(VideoFault(cut), "") << size << " of " << whole.size();
  }
  EXPECT_NE(VideoFault(folder_.Write("longer", whole + "x")), "");
  EXPECT_THROW(VideoFault(folder_ / "absent"), mjp::Error);
}

TEST_P(VideoTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(
      {
        const auto writer = VideoWriter::Open(folder_ / "absent/video", 64, 48, 10);
        AddPictures(*writer, 3);
        writer->Close();
      },
      mjp::Error);
}

TEST_P(VideoTest, KeepsTheOneBefore) {
  const std::string first = Write("video", 5);
  const auto writer = VideoWriter::Open(folder_ / "video", 64, 48, 10, VideoWriter::Before::kKept);
  AddPictures(*writer, 3);
  writer->Close();
  EXPECT_EQ(writer->file(), folder_ / ("video-2" + first.substr(first.rfind('.'))));
  EXPECT_EQ(VideoFault(first, 5), "");
  EXPECT_EQ(VideoFault(writer->file(), 3), "");
  EXPECT_EQ(Files(), 2u);
  Write("video", 4);  // an evaluation's own
  EXPECT_EQ(VideoFault(first, 4), "");
  EXPECT_EQ(Files(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Encoders, VideoTest, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Avi" : "Found"; });

}  // namespace
}  // namespace mjp::app
