#include "policy/checkpoint/safetensors_writer.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "policy/checkpoint/half.h"

namespace mjp {

template <class T>
void SafetensorsWriter::Add(const std::string& name, const std::string& dtype,
                            const std::vector<int64_t>& shape, std::span<const T> values) {
  uint64_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  if (count != values.size()) {
    throw BadInput("tensor \"" + name + "\" has " + std::to_string(values.size()) +
                   " values, its shape needs " + std::to_string(count));
  }
  Entry entry{dtype, shape, std::vector<uint8_t>(values.size_bytes())};
  if (!values.empty()) std::memcpy(entry.data.data(), values.data(), values.size_bytes());
  if (!entries_.emplace(name, std::move(entry)).second) {
    throw BadInput("tensor \"" + name + "\" is added twice");
  }
}

void SafetensorsWriter::AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                                  std::span<const float> values) {
  Add(name, "F32", shape, values);
}

void SafetensorsWriter::AddHalves(const std::string& name, const std::vector<int64_t>& shape,
                                  std::span<const float> values) {
  std::vector<uint16_t> halves(values.size());
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = FloatToHalf(values[i]);
  Add(name, "F16", shape, std::span<const uint16_t>(halves));
}

void SafetensorsWriter::AddIntegers(const std::string& name, const std::vector<int64_t>& shape,
                                    std::span<const int64_t> values) {
  Add(name, "I64", shape, values);
}

void SafetensorsWriter::AddBytes(const std::string& name, const std::vector<int64_t>& shape,
                                 std::span<const uint8_t> values) {
  Add(name, "U8", shape, values);
}

std::vector<uint8_t> SafetensorsWriter::Serialize() const {
  Json header = Json::object();
  if (!metadata_.empty()) header["__metadata__"] = metadata_;
  uint64_t at = 0;
  for (const auto& [name, entry] : entries_) {
    const uint64_t end = at + entry.data.size();
    header[name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t size = text.size();
  std::vector<uint8_t> bytes(8);
  std::memcpy(bytes.data(), &size, 8);
  bytes.reserve(8 + size + at);
  bytes.insert(bytes.end(), text.begin(), text.end());
  for (const auto& [name, entry] : entries_) {
    bytes.insert(bytes.end(), entry.data.begin(), entry.data.end());
  }
  return bytes;
}

void SafetensorsWriter::Write(const std::string& path) const {
  WriteFileAtomically(path, Serialize());
}

}  // namespace mjp
