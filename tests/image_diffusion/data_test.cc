// Readers of picture files: what the formats' own descriptions say, made here byte by byte.

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"
#include "tests/support/temp_dir.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes Idx(const std::vector<uint32_t>& shape, const Bytes& data) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (const uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(extent >> shift & 0xFF);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes Gzip(const Bytes& bytes) {
  Bytes out(bytes.size() + 100);
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<unsigned>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void Write(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
}

TEST(IdxTest, ReadsRawAndCompressedFiles) {
  const Bytes file = Idx({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  for (const Bytes& bytes : {file, Gzip(file)}) {
    const mjp::IdxFile idx = mjp::ParseIdx(bytes, "file");
    EXPECT_EQ(idx.shape, (std::vector<int>{2, 1, 3}));
    EXPECT_EQ(idx.data, (Bytes{1, 2, 3, 4, 5, 6}));
  }
}

TEST(IdxTest, RefusesDamagedFiles) {
  const Bytes file = Idx({2, 3}, {1, 2, 3, 4, 5, 6});
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_THROW(mjp::ParseIdx({file.data(), length}, "file"), mjp::Error) << length;
  }
  Bytes longer = file;
  longer.push_back(0);
  EXPECT_THROW(mjp::ParseIdx(longer, "file"), mjp::Error);
  Bytes floats = file;
  floats[2] = 13;
  EXPECT_THROW(mjp::ParseIdx(floats, "file"), mjp::Error);
  EXPECT_THROW(mjp::ParseIdx(Idx({0xFFFFFFFF, 0xFFFFFFFF}, {}), "file"), mjp::Error);
  Bytes cut = Gzip(file);
  cut.resize(cut.size() - 3);
  EXPECT_THROW(mjp::ParseIdx(cut, "file"), mjp::Error);
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
  Write(folder.path() + "/train-images-idx3-ubyte.gz",
        Gzip(Idx({1, 4, 4}, {0, 4, 8, 8, 8, 12, 8, 8, 1, 1, 0, 0, 1, 1, 0, 200})));
  Write(folder.path() + "/train-labels-idx1-ubyte", Idx({1}, {7}));
  const mjp::PictureSet set = mjp::LoadPictures(options);
  EXPECT_EQ(set.pixels, (Bytes{6, 8, 1, 50}));
  EXPECT_EQ(set.labels, (Bytes{7}));
  EXPECT_EQ(set.classes[7], "7");
  Write(folder.path() + "/train-labels-idx1-ubyte", Idx({1}, {10}));
  EXPECT_THROW(mjp::LoadPictures(options), mjp::Error);
  Write(folder.path() + "/train-labels-idx1-ubyte", Idx({2}, {1, 1}));
  EXPECT_THROW(mjp::LoadPictures(options), mjp::Error);
}

TEST(Cifar10Test, ReadsPlanesAndRefusesTheRest) {
  Bytes record(1 + 3 * 1024);
  record[0] = 9;
  for (int i = 0; i < 1024; ++i) record[1 + i] = 10, record[1025 + i] = 20, record[2049 + i] = 30;
  mjp::PictureSet set{.size = 1, .channels = 3};
  mjp::ParseCifar10(record, "file", set);
  EXPECT_EQ(set.pixels, (Bytes{10, 20, 30}));
  EXPECT_EQ(set.labels, (Bytes{9}));
  record[0] = 10;
  EXPECT_THROW(mjp::ParseCifar10(record, "file", set), mjp::Error);
  record[0] = 9;
  record.pop_back();
  EXPECT_THROW(mjp::ParseCifar10(record, "file", set), mjp::Error);
  EXPECT_THROW(mjp::ParseCifar10({}, "file", set), mjp::Error);
}

// A BMP of one colour, 24 bits: header, then rows of blue, green, red, padded to four bytes.
Bytes Bmp(int width, int height, Bytes bgr) {
  const int row = (width * 3 + 3) / 4 * 4, size = 54 + row * height;
  Bytes bytes(size);
  const auto put = [&](int at, uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes[at + i] = value >> (8 * i) & 0xFF;
  };
  bytes[0] = 'B', bytes[1] = 'M';
  put(2, size), put(10, 54), put(14, 40), put(18, width), put(22, height);
  bytes[26] = 1, bytes[28] = 24;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) bytes[54 + y * row + x * 3 + c] = bgr[c];
  return bytes;
}

TEST(FolderTest, SubFoldersAreClasses) {
  const mjp_test::TempDir folder;
  std::filesystem::create_directories(folder.path() + "/b");
  std::filesystem::create_directories(folder.path() + "/a");
  Write(folder.path() + "/b/1.bmp", Bmp(3, 2, {30, 20, 10}));
  Write(folder.path() + "/a/1.bmp", Bmp(5, 5, {3, 2, 1}));
  mjp::PictureOptions options = {
      .dataset = "folder", .directory = folder.path(), .size = 1, .channels = 3};
  const mjp::PictureSet set = mjp::LoadPictures(options);
  EXPECT_EQ(set.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set.pixels, (Bytes{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(set.labels, (Bytes{0, 1}));
  Write(folder.path() + "/b/2.png", {1, 2, 3});
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
