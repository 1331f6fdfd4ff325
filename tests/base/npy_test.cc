#include "base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace mjp::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a file of version 1.0, 2.0 or 3.0 with this header text and these element bytes
std::string File(const std::string& header, const std::string& elements, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  const size_t digits = version == 1 ? 2 : 4;
  for (size_t i = 0; i < digits; ++i) file += static_cast<char>(header.size() >> (8 * i) & 255);
  return file + header + elements;
}

NpyArray Parse(const std::string& file) {
  return ParseNpy({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "test");
}

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T));
}

const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n";
const std::string kElements = Bytes<float>({1, 2, 3, -4.5, 5, 6});

TEST(NpyTest, ReadsEveryTypeAndVersion) {
  for (const int version : {1, 2, 3}) {
    const NpyArray array = Parse(File(kHeader, kElements, version));
    EXPECT_EQ(array.type, NpyType::kFloat32);
    EXPECT_THAT(array.shape, ElementsAre(3, 2));
    EXPECT_THAT(array.ToDoubles(), ElementsAre(1, 2, 3, -4.5, 5, 6));
  }
  const auto header = [](const std::string& type, const std::string& shape) {
    return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_THAT(Parse(File(header("<f8", "(2,)"), Bytes<double>({0.1, -2}))).ToDoubles(),
              ElementsAre(0.1, -2));
  EXPECT_THAT(Parse(File(header("<i8", "(1, 2)"), Bytes<int64_t>({-7, 8}))).ToIntegers("test"),
              ElementsAre(-7, 8));
  EXPECT_THAT(Parse(File(header("|u1", "(2,)"), "\xff\x01")).ToIntegers("test"),
              ElementsAre(255, 1));
  EXPECT_THAT(Parse(File(header("|u1", "(2,)"), "\xff\x01")).ToDoubles(), ElementsAre(255, 1));
  EXPECT_THAT(Parse(File(header("<i8", "(2,)"), Bytes<int64_t>({-7, 8}))).ToDoubles(),
              ElementsAre(-7, 8));
  EXPECT_EQ(Parse(File(header("<i8", "(0,)"), "")).ToIntegers("test").size(), 0u);
  EXPECT_THROW(Parse(File(header("<f8", "(1,)"), Bytes<double>({3}))).ToIntegers("test"),
               mjp::Error);
  EXPECT_EQ(Parse(File(header("<f8", "()"), Bytes<double>({3}))).size(), 1);
  EXPECT_EQ(Parse(File(header("<f8", "(0, 5)"), "")).size(), 0);
  EXPECT_THAT(Parse(File(header("|u1", "(1, 90)"), std::string(90, 'x'))).shape,
              ElementsAre(1, 90));
}

TEST(NpyTest, ReadsHeadersOfMoreThan256Bytes) {
  const std::string padded = kHeader + std::string(300, ' ');
  for (const int version : {1, 2, 3}) {
    const NpyArray array = Parse(File(padded, kElements, version));
    EXPECT_THAT(array.ToDoubles(), ElementsAre(1, 2, 3, -4.5, 5, 6)) << version;
  }
}

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
TEST(NpyTest, WritesTheHeaderOfTheFormat) {
  const auto header = [](const std::vector<int64_t>& shape) {
    const std::vector<double> values(6);
    const std::string file = NpyText(MakeNpy(values, shape), "test");
    return file.substr(10, file.find('}') + 1 - 10);
  };
  EXPECT_EQ(header({6}), "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }");
  EXPECT_EQ(header({3, 2}), "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }");
  EXPECT_EQ(header({1, 2, 3}), "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3), }");
}

TEST(NpyTest, SaysTheLengthOfALongHeader) {
  std::vector<int64_t> shape(7200, 1000000);
  shape[0] = 0;
  const std::string file = NpyText(MakeNpy(std::vector<double>(), shape), "test");
  const size_t length = static_cast<uint8_t>(file[8]) + 256 * static_cast<uint8_t>(file[9]);
  EXPECT_EQ(length, file.size() - 10);
  EXPECT_GT(length, 246u * 256) << "so that no other base gives the same digits";
  EXPECT_EQ(file.size() % 64, 0u);
  EXPECT_EQ(file.back(), '\n');
}

TEST(NpyTest, RefusesEveryTruncationAndEveryTail) {
  const std::string file = File(kHeader, kElements);
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(Parse(file.substr(0, n)), mjp::Error) << n << " bytes";
  }
  EXPECT_THROW(Parse(file + "x"), mjp::Error);
}

TEST(NpyTest, SurvivesEveryChangedByte) {
  const std::string file = File(kHeader, kElements);
  for (size_t i = 0; i < file.size() - kElements.size(); ++i) {
    for (const int change : {1, 8, 128, 255}) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ change);
      try {
        const NpyArray array = Parse(bad);
        EXPECT_EQ(array.bytes.size(), kElements.size());
      } catch (const mjp::Error&) {
      }
    }
  }
}

TEST(NpyTest, ReadsNoDigitBehindTheHeader) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3";
  try {
    Parse(File(header, "1)}"));
    FAIL() << "accepted";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("',' is missing in the shape"));
  }
}

struct Malformed {
  const char* header;
  const char* reason;
};

class MalformedNpyTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedNpyTest, IsRefusedWithItsReason) {
  try {
    Parse(File(GetParam().header, kElements));
    FAIL() << "accepted";
  } catch (const mjp::Error& error) {
    EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().reason));
    EXPECT_THAT(error.what(), HasSubstr("test: "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Headers, MalformedNpyTest,
    ::testing::Values(
        Malformed{"", "'{' is missing"}, Malformed{"{}", "is missing"},
        Malformed{"{'descr': '<f4', 'fortran_order': False}", "is missing"},
        Malformed{"{'fortran_order': False, 'shape': (3, 2)}", "is missing"},
        Malformed{"{'descr': '<f4', 'shape': (3, 2)}", "is missing"},
        Malformed{"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2)}", "'>f4'"},
        Malformed{"{'descr': '|O', 'fortran_order': False, 'shape': (3, 2)}", "'|O'"},
        Malformed{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 2)}", "string"},
        Malformed{"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}", "Fortran"},
        Malformed{"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 2)}", "neither"},
        Malformed{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)}",
                  "twice"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, "
                  "'shape': (3, 2)}",
                  "twice"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'shape': (3, 2)}",
                  "twice"},
        Malformed{"{", "a string is missing"}, Malformed{"{descr: 1}", "a string is missing"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), 'x': 1}", "unknown"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)} 1", "follows"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", "tuple"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3 2)}", "','"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, -2)}", "not a number"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0, 2)}", "','"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "not a number"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2", "','"},
        Malformed{"{'descr': '<f4", "does not end"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3)}", "needs 36 bytes"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,)}",
                  "too large"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, "
                  "'shape': (4294967296, 4294967296)}",
                  "more than 2^64"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, "
                  "'shape': (4294967296, 4294967296, 0)}",
                  "more than 2^64"},
        Malformed{"{'descr': '<f4', 'fortran_order': False, "
                  "'shape': (6, 1, 1, 1, 1, 1, 1, 1, 1)}",
                  "8 dimensions"}));

TEST(NpyTest, RefusesOtherVersionsAndHugeHeaders) {
  EXPECT_THROW(Parse(File(kHeader, kElements, 4)), mjp::Error);
  std::string huge = File(kHeader, kElements, 2);
  huge[11] = '\x7f';  // a length of 2 GiB
  EXPECT_THROW(Parse(huge), mjp::Error);
}

class NpyFileTest : public ::testing::Test {
 protected:
  NpyFileTest()
      : folder_(std::filesystem::temp_directory_path() / ("npy_test." + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~NpyFileTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(NpyFileTest, WhatIsWrittenIsReadBack) {
  const std::vector<double> values = {0.1, -0.0, 1e300, 4, 5, 6};
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{6}, {3, 2}, {1, 2, 3}, {6, 1, 1, 1}}) {
    WriteNpy(Path("a.npy"), MakeNpy(values, shape));
    const NpyArray array = ReadNpy(Path("a.npy"));
    EXPECT_EQ(array.shape, shape);
    const std::vector<double> back = array.ToDoubles();
    ASSERT_EQ(back.size(), values.size());
    EXPECT_EQ(std::memcmp(back.data(), values.data(), 48), 0);
  }
  // the elements start at a multiple of 64 bytes, as NumPy maps them
  EXPECT_EQ((std::filesystem::file_size(Path("a.npy")) - 48) % 64, 0u);
  // nothing but the file is left
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(NpyFileTest, RefusesMoreThan16GibBytes) {
  std::ofstream(Path("a.npy")).close();
  std::filesystem::resize_file(Path("a.npy"), (uintmax_t{1} << 34) + 1);  // a hole, no blocks
  try {
    ReadNpy(Path("a.npy"));
    FAIL() << "accepted";
  } catch (const mjp::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("17179869184"));
  }
}

TEST_F(NpyFileTest, ErrorsNameTheFile) {
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const mjp::Error& error) {
      return error.what();
    }
    return "no error";
  };
  const NpyArray array = MakeNpy(std::vector<double>{1}, {1});
  EXPECT_THAT(message([&] { ReadNpy(Path("absent.npy")); }), HasSubstr("absent.npy"));
  EXPECT_THAT(message([&] { ReadNpy(folder_.string()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message([&] { WriteNpy(Path("no/such/a.npy"), array); }), HasSubstr("no/such/a.npy"));
  EXPECT_THAT(message([&] {
                WriteNpy(Path("a.npy"), {NpyType::kFloat64, {2}, array.bytes});
              }),
              HasSubstr("shape"));
  std::ofstream(Path("text.npy")) << "hello";
  EXPECT_THAT(message([&] { ReadNpy(Path("text.npy")); }), HasSubstr("text.npy: not a .npy file"));
}

}  // namespace
}  // namespace mjp::app
