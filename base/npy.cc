#include "base/npy.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/folders.h"

namespace mjp::app {
namespace {

static_assert(std::endian::native == std::endian::little, "the elements are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;             // of the first element in a file
constexpr size_t kMaxHeader = 64 * 1024;      // bytes; NumPy writes less than 200 for these types
constexpr size_t kMaxFile = size_t{1} << 34;  // bytes
constexpr size_t kMaxDimensions = 8;

struct TypeName {
  NpyType type;
  int size;
  std::string_view text;
};
constexpr std::array<TypeName, 4> kTypes = {{{NpyType::kFloat32, 4, "<f4"},
                                             {NpyType::kFloat64, 8, "<f8"},
                                             {NpyType::kInt64, 8, "<i8"},
                                             {NpyType::kUint8, 1, "|u1"}}};

const TypeName& NameOf(NpyType type) { return kTypes[static_cast<size_t>(type)]; }

// The dictionary of the header, a Python literal such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  // Fills the type and the shape of `array`.
  void Parse(NpyArray& array) {
    std::optional<NpyType> type;
    std::optional<bool> fortran_order;
    std::optional<std::vector<int64_t>> shape;
    Expect('{');
    while (!Accept('}')) {
      const std::string_view key = String();
      Expect(':');
      if (key == "descr" && !type) {
        type = Type();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = Boolean();
      } else if (key == "shape" && !shape) {
        shape = Shape();
      } else {
        Fail("the key '" + std::string(key) + "' is unknown or given twice");
      }
      if (!Accept(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (!rest_.empty()) Fail("text follows the dictionary");
    if (!type || !fortran_order || !shape) Fail("descr, fortran_order or shape is missing");
    if (*fortran_order) Fail("the array is in Fortran order: save numpy.ascontiguousarray(a)");
    array.type = *type;
    array.shape = *shape;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw mjp::BadInput(name_ + ": not a usable .npy header: " + reason);
  }

  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  bool Accept(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void Expect(char c) {
    if (!Accept(c)) Fail(std::string("'") + c + "' is missing");
  }

  std::string_view String() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) Fail("a string is missing");
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) Fail("a string does not end");
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  NpyType Type() {
    const std::string_view text = String();
    for (const TypeName& known : kTypes) {
      if (text == known.text) return known.type;
    }
    Fail("the element type '" + std::string(text) +
         "' is not supported: use float32, float64, int64 or uint8, little-endian");
  }

  bool Boolean() {
    SkipSpace();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    Fail("fortran_order is neither True nor False");
  }

  // a tuple: (), (3,), (3, 2)
  std::vector<int64_t> Shape() {
    std::vector<int64_t> shape;
    Expect('(');
    bool comma = true;
    while (!Accept(')')) {
      if (!comma) Fail("',' is missing in the shape");
      if (shape.size() == kMaxDimensions) Fail("the array has more than 8 dimensions");
      shape.push_back(Dimension());
      comma = Accept(',');
    }
    if (shape.size() == 1 && !comma) Fail("the shape is not a tuple");
    return shape;
  }

  int64_t Dimension() {
    SkipSpace();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (digits == 18) Fail("a dimension is too large");
      value = value * 10 + (rest_[digits] - '0');
    }
    if (digits == 0) Fail("a dimension is not a number");
    rest_.remove_prefix(digits);
    return value;
  }

  std::string_view rest_;
  const std::string& name_;
};

// bytes of the elements, or nothing where the product leaves 64 bits
std::optional<uint64_t> ByteCount(const NpyArray& array) {
  uint64_t count = NpySize(array.type);
  bool overflow = false;
  for (const int64_t n : array.shape) {
    overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(n), &count);
  }
  if (overflow) return std::nullopt;
  return count;
}

std::string HeaderOf(const NpyArray& array) {
  std::string text = "{'descr': '";
  text += NameOf(array.type).text;
  text += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < array.shape.size(); ++i) {
    text += (i > 0 ? " " : "") + std::to_string(array.shape[i]);
    if (i + 1 < array.shape.size() || array.shape.size() == 1) text += ",";
  }
  text += "), }";
  const size_t before = kMagic.size() + 4;
  text.append(kAlignment - (before + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string file(kMagic);
  file +=
      {'\x01', '\x00', static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
  return file + text;
}

}  // namespace

int NpySize(NpyType type) { return NameOf(type).size; }

std::vector<double> NpyArray::ToDoubles() const {
  std::vector<double> values(size());
  const auto convert = [&]<typename T>(T) {
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
  };
  switch (type) {
    case NpyType::kFloat32:
      convert(float{});
      break;
    case NpyType::kFloat64:
      convert(double{});
      break;
    case NpyType::kInt64:
      convert(int64_t{});
      break;
    case NpyType::kUint8:
      convert(uint8_t{});
      break;
  }
  return values;
}

std::vector<int64_t> NpyArray::ToIntegers(const std::string& name) const {
  if (type == NpyType::kUint8) return {bytes.begin(), bytes.end()};
  if (type != NpyType::kInt64) throw mjp::BadInput(name + ": whole numbers (int64) are needed");
  std::vector<int64_t> values(size());
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

NpyArray MakeNpy(std::span<const double> values, std::vector<int64_t> shape) {
  NpyArray array{NpyType::kFloat64, std::move(shape), {}};
  array.bytes.resize(values.size_bytes());
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), values.size_bytes());
  return array;
}

NpyArray MakeNpy(std::span<const uint8_t> values, std::vector<int64_t> shape) {
  return {NpyType::kUint8, std::move(shape), {values.begin(), values.end()}};
}

NpyArray ParseNpy(std::span<const uint8_t> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || file.size() < 8) throw mjp::BadInput(name + ": not a .npy file");
  const int version = file[6];
  if (version < 1 || version > 3 || file[7] != 0) {
    throw mjp::BadInput(name + ": .npy version " + std::to_string(version) + "." +
                        std::to_string(file[7]) + " is not supported: 1.0 to 3.0 are");
  }
  // the header's length: 2 bytes in version 1, 4 bytes since
  const size_t prefix = version == 1 ? 10 : 12;
  if (file.size() < prefix) throw mjp::BadInput(name + ": the .npy header is cut off");
  size_t length = 0;
  for (size_t i = prefix; i-- > 8;) length = length * 256 + file[i];
  if (length > kMaxHeader) throw mjp::BadInput(name + ": the .npy header is larger than 64 KiB");
  if (length > file.size() - prefix) throw mjp::BadInput(name + ": the .npy header is cut off");

  NpyArray array;
  HeaderParser(text.substr(prefix, length), name).Parse(array);
  const std::span<const uint8_t> elements = file.subspan(prefix + length);
  const std::optional<uint64_t> bytes = ByteCount(array);
  if (!bytes || *bytes != elements.size()) {
    throw mjp::BadInput(name + ": the shape needs " +
                        (bytes ? std::to_string(*bytes) : "more than 2^64") +
                        " bytes, the file has " + std::to_string(elements.size()));
  }
  array.bytes.assign(elements.begin(), elements.end());
  return array;
}

NpyArray ReadNpy(const std::string& path) {
  const std::string file = ReadFile(path, kMaxFile);
  return ParseNpy({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, path);
}

std::string NpyText(const NpyArray& array, const std::string& name) {
  if (ByteCount(array) != array.bytes.size()) {
    throw mjp::BadInput(name + ": the array's shape does not fit its elements");
  }
  std::string file = HeaderOf(array);
  file.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return file;
}

void WriteNpy(const std::string& path, const NpyArray& array) {
  WriteFileAtomically(path, NpyText(array, path));
}

}  // namespace mjp::app
