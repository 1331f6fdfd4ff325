// Readers of picture files: what the formats' own descriptions say, made here byte by byte.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"
#include "tests/support/picture_files.h"
#include "tests/support/temp_dir.h"

namespace {

using mjp_test::Bmp;
using mjp_test::Bytes;
using mjp_test::Gzip;
using mjp_test::Idx;

// Shape and content of an IDX file.
std::pair<std::vector<int>, Bytes> ReadIdx(std::span<const uint8_t> file) {
  mjp::ByteStream bytes(file, "file");
  std::vector<int> shape = mjp::ReadIdxShape(bytes);
  Bytes data(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()));
  bytes.Read(data);
  bytes.CheckEnd();
  return {shape, data};
}
void ReadCifar10(const Bytes& file, mjp::PictureSet& set) {
  mjp::ByteStream bytes(file, "file");
  mjp::ReadCifar10(bytes, 1, set);
}

TEST(IdxTest, ReadsRawAndCompressedFiles) {
  const Bytes file = Idx({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  for (const Bytes& bytes : {file, Gzip(file)}) {
    const auto [shape, data] = ReadIdx(bytes);
    EXPECT_EQ(shape, (std::vector<int>{2, 1, 3}));
    EXPECT_EQ(data, (Bytes{1, 2, 3, 4, 5, 6}));
  }
}

TEST(IdxTest, RefusesDamagedFiles) {
  const Bytes file = Idx({2, 3}, {1, 2, 3, 4, 5, 6});
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_THROW(ReadIdx({file.data(), length}), mjp::Error) << length;
  }
  Bytes longer = file;
  longer.push_back(0);
  EXPECT_THROW(ReadIdx(longer), mjp::Error);
  Bytes floats = file;
  floats[2] = 13;
  EXPECT_THROW(ReadIdx(floats), mjp::Error);
  EXPECT_THROW(ReadIdx(Idx({0xFFFFFFFF, 0xFFFFFFFF}, {})), mjp::Error);
  Bytes cut = Gzip(file);
  cut.resize(cut.size() - 3);
  EXPECT_THROW(ReadIdx(cut), mjp::Error);
}

TEST(LoadPicturesTest, ReadsMnistAndSaysWhatIsMissing) {
  const mjp_test::TempDir folder;
  const mjp::PictureOptions options = {
      .dataset = "mnist", .directory = folder.path(), .size = 2, .channels = 1};
  try {
    mjp::LoadPictures(options);
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find("yann.lecun.com"), std::string::npos) << error.what();
  }
  // each pixel of the result is the mean of 2x2 of the file
  Bytes pixels = {0, 4, 8, 8, 8, 12, 8, 8, 1, 1, 0, 0, 1, 1, 0, 200};
  pixels.resize(10 * 16, 9);
  mjp_test::WriteBytes(folder.path() + "/train-images-idx3-ubyte.gz",
                       Gzip(Idx({10, 4, 4}, pixels)));
  mjp_test::WriteBytes(folder.path() + "/train-labels-idx1-ubyte",
                       Idx({10}, {7, 0, 1, 2, 3, 4, 5, 6, 8, 9}));
  const mjp::PictureSet set = mjp::LoadPictures(options);
  EXPECT_EQ(Bytes(set.pixels.begin(), set.pixels.begin() + 8), (Bytes{6, 8, 1, 50, 9, 9, 9, 9}));
  EXPECT_EQ(set.labels, (Bytes{7, 0, 1, 2, 3, 4, 5, 6, 8, 9}));
  EXPECT_EQ(set.classes[7], "7");
}

TEST(Cifar10Test, ReadsPlanesAndRefusesTheRest) {
  Bytes record(1 + 3 * 1024);
  record[0] = 9;
  for (int i = 0; i < 1024; ++i) record[1 + i] = 10, record[1025 + i] = 20, record[2049 + i] = 30;
  mjp::PictureSet set{.size = 1, .channels = 3};
  ReadCifar10(record, set);
  EXPECT_EQ(set.pixels, (Bytes{10, 20, 30}));
  EXPECT_EQ(set.labels, (Bytes{9}));
  record[0] = 10;
  EXPECT_THROW(ReadCifar10(record, set), mjp::Error);
  record[0] = 9;
  record.pop_back();
  EXPECT_THROW(ReadCifar10(record, set), mjp::Error);
  EXPECT_THROW(ReadCifar10({}, set), mjp::Error);
}

TEST(FolderTest, SubFoldersAreClasses) {
  const mjp_test::TempDir folder;
  std::filesystem::create_directories(folder.path() + "/b");
  std::filesystem::create_directories(folder.path() + "/a");
  mjp_test::WriteBytes(folder.path() + "/b/1.bmp", Bmp(3, 2, {30, 20, 10}));
  mjp_test::WriteBytes(folder.path() + "/a/1.bmp", Bmp(5, 5, {3, 2, 1}));
  mjp::PictureOptions options = {
      .dataset = "folder", .directory = folder.path(), .size = 1, .channels = 3};
  const mjp::PictureSet set = mjp::LoadPictures(options);
  EXPECT_EQ(set.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set.pixels, (Bytes{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(set.labels, (Bytes{0, 1}));
  mjp_test::WriteBytes(folder.path() + "/b/2.png", {1, 2, 3});
  EXPECT_THROW(mjp::LoadPictures(options), mjp::Error);
}

TEST(DigitsTest, TheSameEveryTimeAndTellingApart) {
  mjp::PictureOptions options = {.dataset = "digits", .size = 16, .digits = 44};
  options.drawn = {{"noise", 1, [](mjp::PictureDraws& draws) {
                      return Bytes(3, static_cast<uint8_t>(100 + draws.Below(100)));
                    }}};
  const mjp::PictureSet one = mjp::LoadPictures(options), two = mjp::LoadPictures(options);
  EXPECT_EQ(one.pixels, two.pixels);
  ASSERT_EQ(one.classes.size(), 11u);
  EXPECT_EQ(one.classes[10], "noise");
  EXPECT_EQ(one.count(), 44);
  mjp::PictureOptions other = options;
  other.seed = 1;
  EXPECT_NE(mjp::LoadPictures(other).pixels, one.pixels);
  // every digit has ink: bright pixels on dark ones
  for (int64_t i = 0; i < one.count(); ++i) {
    const auto* first = one.pixels.data() + i * one.PictureBytes();
    const auto [low, high] = std::minmax_element(first, first + one.PictureBytes());
    if (one.labels[i] == 10) {
      EXPECT_TRUE(*low >= 100 && *high < 200) << i;
      continue;
    }
    EXPECT_GT(*high - *low, 60) << i;
  }
}

TEST(LoadPicturesTest, NamesTheDataSetsItKnows) {
  try {
    mjp::LoadPictures({.dataset = "imagenet"});
    FAIL();
  } catch (const mjp::Error& error) {
    EXPECT_NE(std::string(error.what()).find("fashion_mnist"), std::string::npos);
  }
}

}  // namespace
