// Data sets that LeRobot wrote, and what LeRobot itself reads from them.

#include "datasets/dataset.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "datasets/format/statistics.h"
#include "datasets/pictures/png.h"
#include "tests/support/npz.h"
#include "tests/support/shared_data.h"

namespace mjp::datasets {
namespace {

using ::testing::HasSubstr;

TEST(DatasetTest, ReadsWhatLeRobotReads) {
  for (const std::string set : {"image", "video"}) {
    SHARED_OR_SKIP(folder, "datasets/" + set);
    Dataset dataset(folder);
    const std::string expected = folder + "_expected.npz";
    const Json texts = ReadJson(folder + "_expected.json");
    EXPECT_TRUE(dataset.tasks().found_by_lerobot);
    ASSERT_EQ(dataset.episodes().size(), 3u);
    EXPECT_EQ(dataset.episodes()[1].length, 15);
    for (const char* name : {"observation.state", "action", "timestamp", "frame_index",
                             "episode_index", "index", "task_index"}) {
      const std::vector<double> want = mjp_test::ReadNpz(expected, name).ToDoubles();
      std::vector<double> got;
      for (size_t episode = 0; episode < 3; ++episode) {
        const parquet::Column column = dataset.Read(episode, *dataset.info().Find(name));
        got.insert(got.end(), column.values.numbers.begin(), column.values.numbers.end());
        got.insert(got.end(), column.values.ints.begin(), column.values.ints.end());
        if (name != std::string("task_index")) continue;
        for (size_t i = 0; i < column.rows(); ++i) {
          const auto task = static_cast<size_t>(column.values.ints[i]);
          const auto at = static_cast<size_t>(dataset.episodes()[episode].from) + i;
          EXPECT_EQ(dataset.tasks().texts.at(task), texts["tasks"][at]);
        }
      }
      EXPECT_EQ(got, want) << name;
    }
  }
}

// A file of 8 bits a channel whose values are `shade`, with further chunks behind its header.
std::string GrayPng(uint8_t shade, const std::string& chunks) {
  Picture picture{4, 6, std::vector<uint8_t>(4 * 6 * 3, shade)};
  const std::vector<uint8_t> png = EncodePng(picture);
  constexpr size_t kHeaderEnd = 33;
  return std::string(png.begin(), png.begin() + kHeaderEnd) + chunks +
         std::string(png.begin() + kHeaderEnd, png.end());
}

// Pillow, by which LeRobot decodes, gives a file's values as they are.
TEST(PngTest, TheValuesOfAFileAreWhatItHas) {
  using std::string_literals::operator""s;
  const std::string linear = "\0\0\0\4gAMA\0\1\x86\xa0\x31\xe8\x96\x5f"s;  // 100000
  for (const std::string& chunks : {""s, linear}) {
    std::string png = GrayPng(100, chunks);
    const auto decode = [&] {
      return DecodePng({reinterpret_cast<const uint8_t*>(png.data()), png.size()}, "picture");
    };
    // what the writer of this project says of its colours would go before the gamma
    if (const size_t srgb = png.find("sRGB"); srgb != std::string::npos) png.erase(srgb - 4, 13);
    EXPECT_THAT(decode().rgb, testing::Each(100));
    png.resize(png.size() - 20);
    EXPECT_THROW(decode(), Error);
  }
}

TEST(PngTest, SixteenBitsAChannelAreRefused) {
  const uint8_t pixel[] = {// one, of the value 25700
                           0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
                           0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01,
                           0x10, 0x02, 0x00, 0x00, 0x00, 0xc0, 0xe7, 0x8f, 0x9d, 0x00, 0x00, 0x00,
                           0x0b, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x48, 0x01, 0x03, 0x00,
                           0x08, 0x3b, 0x02, 0x59, 0x81, 0x21, 0x51, 0xfc, 0x00, 0x00, 0x00, 0x00,
                           0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  try {
    DecodePng(pixel, "picture");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "picture: has 16 bits a channel; write it with 8");
  }
}

// Every fifth picture of a data set as LeRobot's decoder gives it, against ours: the greatest
// difference of a value, and how many differ at all.
std::pair<int, int64_t> Differences(const std::string& folder) {
  Dataset dataset(folder);
  const Feature& feature = *dataset.info().Find("observation.images.top");
  const auto want = mjp_test::ReadNpz(folder + "_expected.npz", feature.name);
  int greatest = 0;
  int64_t count = 0;
  size_t at = 0;
  for (int64_t index = 0; index < dataset.info().frames; index += 5) {
    size_t episode = 0;
    while (dataset.episodes()[episode].to <= index) ++episode;
    const Picture& picture =
        dataset.ReadPicture(episode, feature, index - dataset.episodes()[episode].from);
    for (const uint8_t value : picture.rgb) {
      const int difference = std::abs(int{value} - int{want.bytes.at(at++)});
      greatest = std::max(greatest, difference);
      count += difference != 0;
    }
  }
  EXPECT_EQ(at, want.bytes.size());
  return {greatest, count};
}

TEST(DatasetTest, ImagesAreThoseOfLeRobot) {
  SHARED_OR_SKIP(folder, "datasets/image");
  EXPECT_EQ(Differences(folder), (std::pair<int, int64_t>(0, 0)));
}

TEST(DatasetTest, FramesOfAVideoAreThoseOfLeRobot) {
  SHARED_OR_SKIP(folder, "datasets/video");
  EXPECT_EQ(Differences(folder), (std::pair<int, int64_t>(0, 0)));
}

TEST(DatasetTest, PicturesInAnyOrderAreTheSame) {
  for (const std::string set : {"image", "video"}) {
    SHARED_OR_SKIP(folder, "datasets/" + set);
    Dataset dataset(folder), other(folder);
    const Feature& feature = *dataset.info().Find("observation.images.top");
    std::vector<Picture> forwards;
    for (int64_t frame = 0; frame < 15; ++frame) {
      forwards.push_back(dataset.ReadPicture(1, feature, frame));
    }
    for (const int64_t frame : {14, 3, 3, 4, 0, 13, 12, 7}) {
      EXPECT_EQ(other.ReadPicture(1, feature, frame).rgb, forwards[static_cast<size_t>(frame)].rgb)
          << frame;
    }
    EXPECT_THROW(dataset.ReadPicture(1, feature, 15), Error);
  }
}

// LeRobot sums in single precision, squares of pictures too; a quantile may fall into the next bin
// of an episode's histogram. docs/NUMERICS.md has the tolerances.
TEST(DatasetTest, StatisticsAreThoseOfLeRobot) {
  SHARED_OR_SKIP(folder, "datasets/image");
  Dataset dataset(folder);
  const Statistics stored = ReadStatistics(folder + "/meta/stats.json", dataset.info().features);
  for (const Feature& feature : dataset.info().features) {
    FeatureStatistics total;
    for (size_t episode = 0; episode < 3; ++episode) {
      FeatureStatistics ours;
      if (feature.IsPicture()) {
        PictureStatistics pictures;
        for (const int64_t frame : SampledFrames(dataset.episodes()[episode].length)) {
          pictures.Add(dataset.ReadPicture(episode, feature, frame));
        }
        ours = pictures.Result();
      } else {
        const parquet::Values values = dataset.Read(episode, feature).values;
        std::vector<double> numbers = values.numbers;
        numbers.insert(numbers.end(), values.ints.begin(), values.ints.end());
        ours = Summarise(numbers, feature.Elements());
      }
      Combine(total, ours);
    }
    const FeatureStatistics& want = stored.at(feature.name);
    EXPECT_EQ(total.count, want.count) << feature.name;
    for (size_t i = 0; i < kStatistics.size(); ++i) {
      const std::vector<double>&got = *total.Rows()[i], &wanted = *want.Rows()[i];
      ASSERT_EQ(got.size(), wanted.size()) << feature.name << " " << kStatistics[i];
      for (size_t element = 0; element < got.size(); ++element) {
        const double range = want.max[element] - want.min[element];
        const double scale = range + std::abs(want.max[element]);
        const bool squares = feature.IsPicture() && std::string(kStatistics[i]) == "std";
        const double tolerance = i >= 4 ? range / 5000 : (squares ? 1e-3 : 1e-6) * scale;
        EXPECT_LE(std::abs(got[element] - wanted[element]), tolerance + 1e-9)
            << feature.name << " " << kStatistics[i] << " " << got[element] << " "
            << wanted[element];
      }
    }
  }
}

TEST(DatasetTest, AbsentDataSetsAreNamed) {
  try {
    Dataset dataset("/nowhere");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("/nowhere: is no LeRobotDataset, for it lacks meta/info.json"));
  }
}

}  // namespace
}  // namespace mjp::datasets
