#include "policy/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"

namespace mjp {
namespace {

constexpr size_t kMaxTensors = 65536;
constexpr size_t kMaxMetadata = 4096;
constexpr size_t kMaxRank = 8;
constexpr size_t kMaxName = 1024;
constexpr uint64_t kMaxInteger = uint64_t{1} << 48;

// where the parser is within {"__metadata__": {...}, "name": {"shape": [...], ...}}
enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };

// Fills a SafetensorsHeader from the parser's events, without a tree of values in between. An
// event that returns false stops the parser.
class HeaderBuilder {
 public:
  bool null() { return Misplaced("null"); }
  bool boolean(bool) { return Misplaced("a boolean"); }
  bool binary(nlohmann::json::binary_t&) { return Misplaced("binary data"); }
  bool number_integer(int64_t) { return NotAnExtent(); }
  bool number_float(double, const std::string&) { return NotAnExtent(); }

  bool number_unsigned(uint64_t value) {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return Misplaced("a number");
    if (value > kMaxInteger) return Fail(Where() + " exceeds 2^48");
    if (place_ == Place::kShape) {
      if (tensor_.shape.size() == kMaxRank) return Fail(Where() + " has more than 8 dimensions");
      tensor_.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (offset_count_ == offsets_.size()) return Fail(Where() + " are not two numbers");
      offsets_[offset_count_++] = value;
    }
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return Misplaced("a string");
    if (DtypeBits(value) == 0) return Fail(Where() + ": there is no dtype \"" + value + "\"");
    tensor_.dtype = std::move(value);
    return true;
  }

  bool start_object(size_t) {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      tensor_ = {};
      tensor_.name = key_;
      offset_count_ = 0;
      fields_.clear();
    } else {
      return Misplaced("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool start_array(size_t) {
    if (place_ != Place::kTensor) return Misplaced("an array");
    if (key_ == "shape") {
      place_ = Place::kShape;
    } else if (key_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return Misplaced("an array");
    }
    return true;
  }

  bool end_array() {
    place_ = Place::kTensor;
    return true;
  }

  bool key(std::string& value) {
    if (place_ == Place::kTop && !CheckName(value)) return false;
    if (place_ == Place::kMetadata && metadata_keys_.size() == kMaxMetadata) {
      return Fail("has more than 4096 entries of metadata");
    }
    if (place_ == Place::kTensor && value != "dtype" && value != "shape" &&
        value != "data_offsets") {
      return Fail("tensor \"" + tensor_.name + "\": unknown field \"" + value + "\"");
    }
    std::set<std::string>& seen = place_ == Place::kTop        ? names_
                                  : place_ == Place::kMetadata ? metadata_keys_
                                                               : fields_;
    if (!seen.insert(value).second) return Fail("key \"" + value + "\" appears twice");
    key_ = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const std::exception&) {
    return Fail("is not valid JSON at byte " + std::to_string(position));
  }

  SafetensorsHeader& header() { return header_; }
  const std::string& error() const { return error_; }

 private:
  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  std::string Where() const {
    if (place_ == Place::kTop) return "entry \"" + key_ + "\"";
    if (place_ == Place::kMetadata) return "metadata \"" + key_ + "\"";
    return "tensor \"" + tensor_.name + "\": " + key_;
  }

  bool Misplaced(const std::string& what) { return Fail(Where() + " must not be " + what); }
  bool NotAnExtent() {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return Misplaced("a number");
    return Fail(Where() + " must be non-negative integers");
  }

  bool CheckName(const std::string& name) {
    if (header_.tensors.size() == kMaxTensors) return Fail("has more than 65536 tensors");
    if (name.size() > kMaxName) return Fail("a tensor's name is longer than 1024 bytes");
    for (const char c : name) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        return Fail("a tensor's name contains a control character");
      }
    }
    return true;
  }

  bool FinishTensor() {
    const std::string where = "tensor \"" + tensor_.name + "\"";
    if (fields_.size() != 3) return Fail(where + " needs dtype, shape and data_offsets");
    if (offset_count_ != 2) return Fail(where + ": data_offsets are not two numbers");
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    if (tensor_.end < tensor_.begin) return Fail(where + " ends before it begins");
    uint64_t bits = static_cast<uint64_t>(DtypeBits(tensor_.dtype));
    uint64_t count = 1;
    for (const int64_t extent : tensor_.shape) {
      if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count)) {
        return Fail(where + ": its number of elements overflows");
      }
    }
    if (__builtin_mul_overflow(bits, count, &bits)) return Fail(where + ": its size overflows");
    if (bits % 8 != 0) return Fail(where + " is not a whole number of bytes");
    if (bits / 8 != tensor_.end - tensor_.begin) {
      return Fail(where + ": its shape needs " + std::to_string(bits / 8) +
                  " bytes, its data_offsets give " + std::to_string(tensor_.end - tensor_.begin));
    }
    header_.tensors.push_back(std::move(tensor_));
    return true;
  }

  Place place_ = Place::kOutside;
  std::string key_;
  TensorEntry tensor_;
  std::array<uint64_t, 2> offsets_{};
  size_t offset_count_ = 0;
  std::set<std::string> names_, metadata_keys_, fields_;
  SafetensorsHeader header_;
  std::string error_;
};

// Every byte of the data belongs to exactly one tensor: no hole, no overlap, no hidden content.
void CheckCoverage(const std::vector<TensorEntry>& tensors, uint64_t data_size,
                   const std::string& origin) {
  uint64_t at = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != at) {
      throw BadInput(origin + ": tensor \"" + tensor.name + "\" begins at byte " +
                     std::to_string(tensor.begin) + " of the data where " + std::to_string(at) +
                     " is next: " + (tensor.begin < at ? "tensors overlap" : "there is a hole"));
    }
    at = tensor.end;
  }
  if (at != data_size) {
    throw BadInput(
        origin + ": the tensors have " + std::to_string(at) + " bytes of data, the file has " +
        std::to_string(data_size) +
        (at > data_size ? ": it is truncated, copy it again" : ": it has something behind them"));
  }
}

}  // namespace

int DtypeBits(std::string_view dtype) {
  static constexpr std::pair<std::string_view, int> kTable[] = {
      {"F32", 32},        {"F16", 16},        {"BF16", 16},   {"F64", 64},    {"I64", 64},
      {"U8", 8},          {"BOOL", 8},        {"I8", 8},      {"I16", 16},    {"U16", 16},
      {"I32", 32},        {"U32", 32},        {"U64", 64},    {"C64", 64},    {"F4", 4},
      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
  };
  for (const auto& [name, bits] : kTable) {
    if (name == dtype) return bits;
  }
  return 0;
}

SafetensorsHeader ParseSafetensorsHeader(std::string_view text, uint64_t data_size,
                                         const std::string& origin) {
  // leading white space is tolerated, as by the reference; the library would also skip a byte
  // order mark, and take a NUL for the end of the text
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    throw BadInput(origin + ": its header is not a JSON object; is it a safetensors file?");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw BadInput(origin + ": its header contains a NUL byte");
  }
  HeaderBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw BadInput(origin + ": its header: " + builder.error());
  }
  SafetensorsHeader header = std::move(builder.header());
  std::ranges::sort(header.tensors, {},
                    [](const TensorEntry& tensor) { return std::pair(tensor.begin, tensor.end); });
  CheckCoverage(header.tensors, data_size, origin);
  return header;
}

}  // namespace mjp
