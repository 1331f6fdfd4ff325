#include "policy/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "policy/checkpoint/half.h"
#include "policy/checkpoint/safetensors_header.h"

namespace mjp {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it is");

constexpr uint64_t kLength = 8;  // bytes that say how long the header is
constexpr uint64_t kMaxHeader = uint64_t{16} << 20;

// Element `i` of data that need not be aligned.
template <class T>
T Load(std::span<const uint8_t> data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Checks the length of the header, of which at least the first 8 bytes must be there.
void CheckHeaderSize(std::span<const uint8_t> bytes, uint64_t file_size,
                     const std::string& origin) {
  if (file_size < kLength) {
    throw BadInput(origin + ": has " + std::to_string(file_size) +
                   " bytes, a safetensors file has 8 at least");
  }
  const auto header_size = Load<uint64_t>(bytes, 0);
  if (header_size > kMaxHeader) {
    throw BadInput(origin + ": claims a header of " + std::to_string(header_size) +
                   " bytes, more than 16 MiB; is it a safetensors file?");
  }
  if (header_size > file_size - kLength) {
    throw BadInput(origin + ": claims a header of " + std::to_string(header_size) +
                   " bytes but has " + std::to_string(file_size) +
                   " in all: it is truncated, copy it again");
  }
}

// The length and the header of a file from its beginning.
std::vector<uint8_t> HeaderOf(RegularFile& source, const std::string& path) {
  std::vector<uint8_t> bytes;
  source.Read(std::min(kLength, source.size()), bytes);
  CheckHeaderSize(bytes, source.size(), path);
  source.Read(Load<uint64_t>(bytes, 0), bytes);
  return bytes;
}

}  // namespace

uint64_t TensorEntry::ElementCount() const {
  uint64_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

SafetensorsFile SafetensorsFile::FromHeader(std::vector<uint8_t> bytes, uint64_t size,
                                            const std::string& origin) {
  SafetensorsFile file;
  file.origin_ = origin;
  file.bytes_ = std::move(bytes);
  const uint64_t header_size = Load<uint64_t>(file.bytes_, 0);
  file.data_begin_ = kLength + header_size;
  const std::string_view text(reinterpret_cast<const char*>(file.bytes_.data()) + kLength,
                              header_size);
  SafetensorsHeader header = ParseSafetensorsHeader(text, size - file.data_begin_, origin);
  file.tensors_ = std::move(header.tensors);
  file.metadata_ = std::move(header.metadata);
  for (size_t i = 0; i < file.tensors_.size(); ++i) file.index_[file.tensors_[i].name] = i;
  return file;
}

SafetensorsFile SafetensorsFile::Parse(std::vector<uint8_t> bytes, const std::string& origin) {
  const uint64_t size = bytes.size();
  CheckHeaderSize(bytes, size, origin);
  return FromHeader(std::move(bytes), size, origin);
}

SafetensorsFile SafetensorsFile::Read(const std::string& path, uint64_t limit,
                                      const HeaderCheck& check) {
  RegularFile source(path, limit);
  SafetensorsFile file = FromHeader(HeaderOf(source, path), source.size(), path);
  if (check) check(file);
  file.bytes_.reserve(source.size());
  source.Read(source.size() - file.data_begin_, file.bytes_);
  source.CheckUnchanged();
  return file;
}

SafetensorsFile SafetensorsFile::ReadHeader(const std::string& path) {
  RegularFile source(path, kMaxFile);
  return FromHeader(HeaderOf(source, path), source.size(), path);
}

const TensorEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const uint8_t> SafetensorsFile::Data(const TensorEntry& entry) const {
  return bytes().subspan(data_begin_ + entry.begin, entry.end - entry.begin);
}

const TensorEntry& SafetensorsFile::At(std::string_view name) const {
  const TensorEntry* entry = Find(name);
  if (!entry) throw BadInput(origin_ + ": lacks tensor \"" + std::string(name) + "\"");
  return *entry;
}

std::span<const uint8_t> SafetensorsFile::DataOf(std::string_view name,
                                                 std::string_view dtype) const {
  const TensorEntry& entry = At(name);
  if (entry.dtype != dtype) {
    throw BadInput(origin_ + ": tensor \"" + entry.name + "\" has dtype " + entry.dtype + ", not " +
                   std::string(dtype));
  }
  return Data(entry);
}

Tensor SafetensorsFile::Floats(std::string_view name) const {
  const TensorEntry& entry = At(name);
  const std::span<const uint8_t> data = Data(entry);
  Tensor tensor{entry.shape, std::vector<float>(entry.ElementCount())};
  std::vector<float>& out = tensor.data;
  if (entry.dtype == "F32") {
    if (!data.empty()) std::memcpy(out.data(), data.data(), data.size());
  } else if (entry.dtype == "F16") {
    for (size_t i = 0; i < out.size(); ++i) out[i] = HalfToFloat(Load<uint16_t>(data, i));
  } else if (entry.dtype == "BF16") {
    for (size_t i = 0; i < out.size(); ++i) out[i] = BfloatToFloat(Load<uint16_t>(data, i));
  } else if (entry.dtype == "F64") {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(Load<double>(data, i));
  } else {
    throw Unsupported(origin_ + ": tensor \"" + entry.name + "\" has dtype " + entry.dtype +
                      ", which is not supported here (F32, F16, BF16, F64 are)");
  }
  return tensor;
}

std::vector<int64_t> SafetensorsFile::Integers(std::string_view name) const {
  const std::span<const uint8_t> data = DataOf(name, "I64");
  std::vector<int64_t> values(data.size() / sizeof(int64_t));
  for (size_t i = 0; i < values.size(); ++i) values[i] = Load<int64_t>(data, i);
  return values;
}

std::vector<uint8_t> SafetensorsFile::Bytes(std::string_view name) const {
  const std::span<const uint8_t> data = DataOf(name, "U8");
  return {data.begin(), data.end()};
}

}  // namespace mjp
