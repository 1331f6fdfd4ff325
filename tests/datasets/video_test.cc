// Videos that are written: each frame at its time. And files that are none.

#include "datasets/video/video.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "tests/datasets/recorded_set.h"
#include "tests/support/temp_dir.h"

namespace mjp::datasets {
namespace {

TEST(VideoTest, VideosAreTheirFramesAtTheirTimes) {
  const mjp_test::TempDir folder;
  {
    DatasetWriter writer(folder / "set", mjp_test::RecordedInfo("video"));
    for (int64_t episode = 0; episode < 3; ++episode) mjp_test::RecordEpisode(writer, episode);
    writer.Finish();
  }
  mjp_test::ExpectRecorded(folder / "set", 3);
  Dataset dataset(folder / "set");
  const Feature& feature = *dataset.info().Find("observation.images.top");
  EXPECT_STREQ(dataset.Video(dataset.episodes()[0], feature).codec(), "av1");
  for (int64_t frame = 0; frame < 5; ++frame) {
    // a frame is nearer to its own picture than to its neighbours'
    const Picture& picture = dataset.ReadPicture(1, feature, frame);
    const auto distance = [&](int64_t other) {
      const Picture want = mjp_test::RecordedFrame(1, other).pictures.at(feature.name);
      double sum = 0;
      for (size_t i = 0; i < want.rgb.size(); ++i) {
        const double difference = double{want.rgb[i] * 1.0} - picture.rgb[i];
        sum += difference * difference;
      }
      return sum / static_cast<double>(want.rgb.size());
    };
    const double own = distance(frame);
    EXPECT_LT(own, 65) << "below 30 dB";
    EXPECT_LT(own, distance(frame + 1));
    EXPECT_LT(own, distance(frame - 1));
  }
}

// A video of 12 frames at 10 frames per second.
std::string WriteVideo(const mjp_test::TempDir& folder) {
  const std::string path = folder / "v.mp4";
  const auto video = CreateVideo(path, 64, 96, 10);
  for (int64_t frame = 0; frame < 12; ++frame) {
    video->Add(mjp_test::RecordedFrame(0, frame).pictures.begin()->second);
  }
  video->Finish();
  return path;
}

TEST(VideoTest, ATimeWithoutAFrameIsAnError) {
  const mjp_test::TempDir folder;
  const auto video = OpenVideo(WriteVideo(folder));
  EXPECT_EQ(video->frames(), 12);
  EXPECT_EQ(video->height(), 64);
  EXPECT_NO_THROW(video->At(1.1, kTimeTolerance));
  for (const double seconds : {0.304, 1.2, -0.1, 1e9}) {
    EXPECT_THROW(video->At(seconds, kTimeTolerance), Error) << seconds;
  }
  EXPECT_NO_THROW(video->At(0.3, kTimeTolerance)) << "after errors";
  const std::vector<uint8_t> before = video->At(0.5, kTimeTolerance).rgb;
  video->At(0, kTimeTolerance);
  EXPECT_EQ(video->At(0.5, kTimeTolerance).rgb, before);
}

// A cut or changed file: each frame decodes, or is an error.
TEST(VideoTest, DamageIsAnErrorOrHarmless) {
  const mjp_test::TempDir folder;
  const std::vector<uint8_t> bytes = ReadFile(WriteVideo(folder), 1 << 20);
  int refused = 0, tried = 0;
  const auto attempt = [&](const std::vector<uint8_t>& changed) {
    const std::string path = folder / "damaged.mp4";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(changed.data()),
               static_cast<std::streamsize>(changed.size()));
    ++tried;
    try {
      const auto video = OpenVideo(path);
      for (int frame = 0; frame < 12; ++frame) {
        const Picture& picture = video->At(frame / 10.0, kTimeTolerance);
        EXPECT_EQ(picture.rgb.size(), picture.Bytes());
      }
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t at = 0; at < bytes.size(); at += 37) {
    std::vector<uint8_t> changed = bytes;
    changed[at] ^= 0x55;
    attempt(changed);
  }
  for (size_t size = 0; size < bytes.size(); size += bytes.size() / 7) {
    attempt({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)});
  }
  EXPECT_GT(refused, tried / 10);
  EXPECT_THROW(OpenVideo(folder / "absent.mp4"), Error);
}

TEST(VideoTest, SizesThatTheEncoderLacksAreRefused) {
  const mjp_test::TempDir folder;
  EXPECT_THROW(CreateVideo(folder / "v.mp4", 32, 64, 10), Error);
  EXPECT_THROW(CreateVideo(folder / "v.mp4", 97, 64, 10), Error);
}

}  // namespace
}  // namespace mjp::datasets
