#include "policy/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "policy/checkpoint/half.h"
#include "policy/checkpoint/safetensors_writer.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using mjp::SafetensorsFile;
using testing::HasSubstr;

const std::string kTensor = R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
const std::string kData(16, '\0');

std::string Prefix(uint64_t size) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes;
}

std::string File(const std::string& header, const std::string& data) {
  return Prefix(header.size()) + header + data;
}

SafetensorsFile Parse(const std::string& bytes) {
  return SafetensorsFile::Parse({bytes.begin(), bytes.end()}, "m.safetensors");
}

// One tensor "t" with these fields.
std::string Entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

struct OddFile {
  std::string name, bytes;
  std::string message;  // part of the error; empty: must be accepted
};

std::vector<OddFile> Corpus() {
  const std::string two_first = R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":)";
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += R"({"a":)";
  const std::string entry = kTensor.substr(5, kTensor.size() - 6);
  return {
      {"valid", File(kTensor, kData), ""},
      {"leading_spaces", File("  " + kTensor, kData), ""},
      {"trailing_spaces", File(kTensor + "   ", kData), ""},
      {"empty_object", File("{}", ""), ""},
      {"scalar", File(Entry("F32", "[]", "[0,4]"), std::string(4, 'x')), ""},
      {"zero_size", File(Entry("F32", "[0,3]", "[0,0]"), ""), ""},
      {"metadata", File(R"({"__metadata__":{"format":"pt"},"t":)" + entry + "}", kData), ""},
      {"bytes_behind", File(kTensor, kData + "EVIL"), "something behind"},
      {"truncated", File(kTensor, kData.substr(2)), "truncated"},
      {"key_twice", File(R"({"t":)" + entry + R"(,"t":)" + entry + "}", kData), "appears twice"},
      {"field_twice",
       File(R"({"t":{"dtype":"F32","dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})", kData),
       "appears twice"},
      {"metadata_twice", File(R"({"__metadata__":{},"__metadata__":{},"t":)" + entry + "}", kData),
       "appears twice"},
      {"overlap", File(two_first + R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", kData),
       "overlap"},
      {"hole",
       File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
            kData.substr(4)),
       "hole"},
      {"wrong_shape", File(Entry("F32", "[3,2]", "[0,16]"), kData), "its shape needs 24 bytes"},
      {"end_behind", File(Entry("F32", "[4,4]", "[0,64]"), kData), "truncated"},
      {"huge_extent", File(Entry("F32", "[2,18446744073709551614]", "[0,16]"), kData), "2^48"},
      {"count_overflows", File(Entry("F32", "[281474976710656,281474976710656]", "[0,0]"), ""),
       "overflows"},
      {"wraps_to_zero", File(Entry("F32", "[4611686018427387904,4]", "[0,0]"), ""), "2^48"},
      {"size_overflows", File(Entry("F32", "[281474976710656,32768]", "[0,0]"), ""),
       "size overflows"},
      {"half_a_byte", File(Entry("F4", "[3]", "[0,1]"), "x"), "whole number of bytes"},
      {"unknown_dtype", File(Entry("Q99", "[2,2]", "[0,16]"), kData), "no dtype \"Q99\""},
      {"negative_offset", File(Entry("F32", "[2,2]", "[-16,0]"), kData), "non-negative integers"},
      {"end_before_begin", File(Entry("F32", "[0]", "[16,0]"), kData), "ends before it begins"},
      {"fraction", File(Entry("F32", "[2,2]", "[0,16.5]"), kData), "non-negative integers"},
      {"float_extent", File(Entry("F32", "[2.0,2]", "[0,16]"), kData), "non-negative integers"},
      {"huge_header", Prefix(uint64_t{1} << 63) + kTensor + kData, "more than 16 MiB"},
      {"header_beyond_file", Prefix(10000) + kTensor + kData, "truncated"},
      {"empty_header", File("", ""), "not a JSON object"},
      {"seven_bytes", "1234567", "8 at least"},
      {"not_utf8", File("{\"t\xFF\":" + entry + "}", kData), "not valid JSON"},
      {"top_array", File("[1,2]", ""), "not a JSON object"},
      {"metadata_number", File(R"({"__metadata__":{"a":1},"t":)" + entry + "}", kData), "metadata"},
      {"metadata_null", File(R"({"__metadata__":null,"t":)" + entry + "}", kData), "must not be"},
      {"metadata_nested", File(R"({"__metadata__":{"a":{}}})", ""), "must not be an object"},
      {"extra_field",
       File(R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16],"x":1}})", kData),
       "unknown field \"x\""},
      {"missing_offsets", File(R"({"t":{"dtype":"F32","shape":[2,2]}})", kData), "needs dtype"},
      {"three_offsets", File(Entry("F32", "[2,2]", "[0,8,16]"), kData), "not two numbers"},
      {"one_offset", File(Entry("F32", "[2,2]", "[16]"), kData), "not two numbers"},
      {"deep_nesting", File(nested, ""), "unknown field"},
      {"deep_field", File(R"({"t":{"dtype":)" + nested, ""), "must not be an object"},
      {"junk_in_header", File(kTensor + "xyz", kData), "not valid JSON"},
      {"nul_in_name", File(R"({"t\u0000x":)" + entry + "}", kData), "control character"},
      {"raw_nul", File(kTensor + std::string("\0{}", 3), kData), "NUL"},
      {"rank_9", File(Entry("F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]"), kData), "8 dimensions"},
      {"byte_order_mark", File("\xEF\xBB\xBF" + kTensor, kData), "not a JSON object"},
      {"long_name", File("{\"" + std::string(1025, 'n') + "\":" + entry + "}", kData), "1024"},
      {"shape_text", File(Entry("F32", "\"2\"", "[0,16]"), kData), "must not be a string"},
      {"shape_nested", File(Entry("F32", "[[2],2]", "[0,16]"), kData), "must not be an array"},
      {"shape_null", File(Entry("F32", "null", "[0,16]"), kData), "must not be null"},
      {"tensor_text", File(R"({"t":"F32"})", ""), "entry \"t\" must not be a string"},
      {"delete_in_name", File("{\"t\x7F\":" + entry + "}", kData), "control character"},
      {"tensor_number", File(R"({"t":1})", ""), "must not be a number"},
      {"tensor_bool", File(R"({"t":true})", ""), "must not be a boolean"},
      {"tensor_array", File(R"({"t":[]})", ""), "must not be an array"},
      {"dtype_array", File(R"({"t":{"dtype":["F32"],"shape":[],"data_offsets":[0,4]}})", kData),
       "must not be"},
      {"dtype_float", File(R"({"t":{"dtype":1.5,"shape":[],"data_offsets":[0,4]}})", kData),
       "must not be"},
  };
}

TEST(Safetensors, CorpusOfOddFiles) {
  for (const OddFile& odd : Corpus()) {
    SCOPED_TRACE(odd.name);
    if (odd.message.empty()) {
      EXPECT_NO_THROW(Parse(odd.bytes));
      continue;
    }
    try {
      Parse(odd.bytes);
      ADD_FAILURE() << "accepted";
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(odd.message));
      EXPECT_THAT(error.what(), HasSubstr("m.safetensors"));
      EXPECT_EQ(error.code(), mjp::ExitCode::kBadInput);
    }
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  mjp::SafetensorsWriter writer;
  const std::vector<float> values(150, 1.5f);
  writer.AddFloats("first", {10, 10}, std::span(values).first(100));
  writer.AddHalves("second", {150}, values);
  const std::vector<uint8_t> whole = writer.Serialize();
  ASSERT_GT(whole.size(), 800u);
  EXPECT_NO_THROW(SafetensorsFile::Parse(whole, "whole"));
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(SafetensorsFile::Parse(std::move(cut), "cut"), mjp::Error) << size;
  }
}

TEST(Safetensors, RefusesTooManyTensors) {
  std::string header = "{";
  for (int i = 0; i < 65537; ++i) {
    header += (i ? ",\"" : "\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_THROW(Parse(File(header + "}", "")), mjp::Error);
}

TEST(Safetensors, TakesAsMuchMetadataAsItMay) {
  const auto with_entries = [](int n) {
    std::string header = "{\"__metadata__\":{";
    for (int i = 0; i < n; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"x\"";
    return File(header + "}}", "");
  };
  EXPECT_EQ(Parse(with_entries(4096)).metadata().size(), 4096u);
  EXPECT_THROW(Parse(with_entries(4097)), mjp::Error);
}

// those of the reference: https://github.com/huggingface/safetensors
TEST(Safetensors, KnowsTheSizeOfEveryDtype) {
  const std::pair<const char*, int> bits_of[] = {
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"F8_E5M2FNUZ", 8},
      {"I32", 32}, {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64}, {"U64", 64}};
  for (const auto& [dtype, bits] : bits_of) {
    const std::string data(static_cast<size_t>(bits), 'x');  // of eight elements
    EXPECT_NO_THROW(Parse(File(Entry(dtype, "[8]", "[0," + std::to_string(bits) + "]"), data)))
        << dtype;
  }
}

TEST(Safetensors, ReadsBackWhatIsWritten) {
  TempDir dir;
  const std::vector<float> values = {0.0f, -1.5f, 3.25f, 65504.0f, 1e-7f, 0.1f};
  const std::vector<int64_t> counts = {1, -2, int64_t{1} << 60};
  const std::vector<uint8_t> pixels = {0, 127, 255};
  mjp::SafetensorsWriter writer;
  writer.AddHalves("half", {3, 2}, values);
  writer.AddFloats("float", {2, 3}, values);
  writer.AddIntegers("counts", {3}, counts);
  writer.AddBytes("pixels", {1, 3}, pixels);
  writer.AddFloats("empty", {0, 4}, {});
  EXPECT_THROW(writer.AddFloats("float", {6}, values), mjp::Error);
  EXPECT_THROW(writer.AddFloats("other", {5}, values), mjp::Error);
  writer.Write(dir / "t.safetensors");

  size_t seen = 0;
  const SafetensorsFile file =
      SafetensorsFile::Read(dir / "t.safetensors", SafetensorsFile::kMaxFile,
                            [&](const SafetensorsFile& header) { seen = header.tensors().size(); });
  EXPECT_EQ(seen, 5u) << "judged before the data is read";
  EXPECT_THROW(SafetensorsFile::Read(dir / "t.safetensors", SafetensorsFile::kMaxFile,
                                     [](const auto&) { throw mjp::BadInput("not this one"); }),
               mjp::Error);
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.Floats("float").data, values);
  EXPECT_EQ(file.Floats("float").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.Integers("counts"), counts);
  EXPECT_EQ(file.Bytes("pixels"), pixels);
  EXPECT_TRUE(file.Floats("empty").data.empty());
  const std::vector<float> half = file.Floats("half").data;
  EXPECT_EQ(half[3], 65504.0f);
  EXPECT_NEAR(half[5], 0.1f, 0.1f / 2048);
  EXPECT_NEAR(half[4], 1e-7f, 0x1p-25f);
  EXPECT_THROW(file.Floats("counts"), mjp::Error);
  EXPECT_THROW(file.Integers("float"), mjp::Error);
  EXPECT_THROW(file.Floats("absent"), mjp::Error);
}

TEST(Safetensors, OrderOfAddingDoesNotMatter) {
  const std::vector<float> values = {1, 2};
  mjp::SafetensorsWriter a, b;
  a.AddFloats("x", {2}, values);
  a.AddFloats("y", {2}, values);
  b.AddFloats("y", {2}, values);
  b.AddFloats("x", {2}, values);
  EXPECT_EQ(a.Serialize(), b.Serialize());
}

TEST(Safetensors, ConvertsWiderAndNarrowerFloats) {
  std::string data(8, '\0');
  const double wide = 0.1;
  std::memcpy(data.data(), &wide, 8);
  EXPECT_EQ(Parse(File(Entry("F64", "[1]", "[0,8]"), data)).Floats("t").data[0], 0.1f);
  const uint16_t brain = 0xC0A0;  // -5
  data.resize(2);
  std::memcpy(data.data(), &brain, 2);
  EXPECT_EQ(Parse(File(Entry("BF16", "[1]", "[0,2]"), data)).Floats("t").data[0], -5.0f);
}

TEST(Half, RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = mjp::HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(mjp::HalfToFloat(mjp::FloatToHalf(value))));
    } else {
      ASSERT_EQ(mjp::FloatToHalf(value), half) << value;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(mjp::FloatToHalf(1.0f + 0x1p-11f), mjp::FloatToHalf(1.0f));
  EXPECT_EQ(mjp::FloatToHalf(1.0f + 3 * 0x1p-11f), mjp::FloatToHalf(1.0f + 0x1p-9f));
  EXPECT_EQ(mjp::FloatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(mjp::FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(mjp::FloatToHalf(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(mjp::FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(mjp::FloatToHalf(0x1.8p-25f), 0x0001);
}

TEST(ReadSafetensors, RefusesAFileThatChangesMeanwhile) {
  TempDir dir;
  const std::string path = dir.Write("t.safetensors", "");
  std::filesystem::resize_file(path, 32 << 20);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (uintmax_t i = 0; !done; ++i) std::filesystem::resize_file(path, (32 + i % 2) << 20);
  });
  int refused = 0;
  for (int i = 0; i < 1000 && refused < 3; ++i) {
    try {
      mjp::ReadFile(path, 1 << 30);
    } catch (const mjp::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("changed while it was read"));
      ++refused;
    }
  }
  done = true;
  writer.join();
  EXPECT_EQ(refused, 3);
}

TEST(ReadSafetensors, RefusesAFileBeyondItsLimit) {
  TempDir dir;
  const std::string path = dir.Write("large", "12345");
  EXPECT_EQ(mjp::ReadFile(path, 5).size(), 5u);
  EXPECT_THROW(mjp::ReadFile(path, 4), mjp::Error);
}

TEST(ReadSafetensors, RefusesWhatIsNotARegularFile) {
  TempDir dir;
  EXPECT_THROW(SafetensorsFile::Read(dir / "absent"), mjp::Error);
  EXPECT_THROW(SafetensorsFile::Read(dir.path()), mjp::Error);
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_THROW(SafetensorsFile::Read(dir / "fifo"), mjp::Error);
  EXPECT_THROW(SafetensorsFile::Read("/dev/null"), mjp::Error);
}

TEST(WriteSafetensors, LeavesTheOldFileWhereItCannotWrite) {
  TempDir dir;
  mjp::SafetensorsWriter writer;
  EXPECT_THROW(writer.Write(dir / "absent/t.safetensors"), mjp::Error);
  dir.Write("t.safetensors", "old");
  writer.Write(dir / "t.safetensors");
  EXPECT_TRUE(SafetensorsFile::Read(dir / "t.safetensors").tensors().empty());
}

}  // namespace
}  // namespace mjp_test
