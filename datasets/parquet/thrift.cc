#include "datasets/parquet/thrift.h"

#include <limits>

#include "base/error.h"

namespace mjp::parquet {
namespace {

constexpr int kDeepest = 32;  // structs and lists within each other

}  // namespace

ThriftReader::ThriftReader(std::span<const uint8_t> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {}

void ThriftReader::Enter() {
  if (++depth_ > kDeepest) throw BadInput(where_ + ": nests too deeply; the file is damaged");
}

void ThriftReader::Advance(uint64_t count) {
  if (count > bytes_.size() - position_) {
    throw BadInput(where_ + ": ends too early; the file is damaged");
  }
  position_ += count;
}

uint8_t ThriftReader::Byte() {
  Advance(1);
  return bytes_[position_ - 1];
}

uint64_t ThriftReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = Byte();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw BadInput(where_ + ": has a number of more than 64 bits; the file is damaged");
}

int64_t ThriftReader::Int64() {
  const uint64_t zigzag = Varint();
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

int32_t ThriftReader::Int32() {
  const int64_t value = Int64();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    throw BadInput(where_ + ": has " + std::to_string(value) + " where 32 bits are meant");
  }
  return static_cast<int32_t>(value);
}

std::string_view ThriftReader::Binary() {
  const uint64_t size = Varint();
  Advance(size);
  return {reinterpret_cast<const char*>(bytes_.data()) + position_ - size, size};
}

ThriftType ThriftReader::FieldHeader(int& id) {
  const uint8_t header = Byte();
  const int type = header & 0x0f, delta = header >> 4;
  if (type == 0) return ThriftType::kStop;
  if (type > 12) throw BadInput(where_ + ": has a field of no known type; the file is damaged");
  const int64_t next = delta > 0 ? id + delta : Int64();
  if (next < 0 || next > std::numeric_limits<int16_t>::max()) {
    throw BadInput(where_ + ": has a field of no known number; the file is damaged");
  }
  id = static_cast<int>(next);
  return static_cast<ThriftType>(type);
}

uint64_t ThriftReader::ListSize(uint8_t header) {
  const uint64_t size = header >> 4 == 15 ? Varint() : header >> 4;
  // each element has at least a byte
  if (size > bytes_.size() - position_) {
    throw BadInput(where_ + ": has a list longer than the file; the file is damaged");
  }
  return size;
}

uint64_t ThriftReader::ListHeader(ThriftType type) {
  const uint8_t header = Byte();
  const uint64_t size = ListSize(header);
  if (size > 0 && (header & 0x0f) != static_cast<int>(type)) {
    throw BadInput(where_ + ": has a list of another type than Parquet's; the file is damaged");
  }
  return size;
}

void ThriftReader::SkipElement(ThriftType type) {
  // a boolean that is no field has a byte of its own
  const bool boolean = type == ThriftType::kTrue || type == ThriftType::kFalse;
  boolean ? Advance(1) : Skip(type);
}

void ThriftReader::SkipMap() {
  const uint64_t size = Varint();
  if (size == 0) return;
  const uint8_t types = Byte();
  for (uint64_t i = 0; i < size; ++i) {
    SkipElement(static_cast<ThriftType>(types >> 4));
    SkipElement(static_cast<ThriftType>(types & 0x0f));
  }
}

void ThriftReader::Skip(ThriftType type) {
  Enter();
  switch (type) {
    case ThriftType::kTrue:
    case ThriftType::kFalse:
      break;
    case ThriftType::kByte:
      Advance(1);
      break;
    case ThriftType::kInt16:
    case ThriftType::kInt32:
    case ThriftType::kInt64:
      Varint();
      break;
    case ThriftType::kDouble:
      Advance(8);
      break;
    case ThriftType::kBinary:
      Binary();
      break;
    case ThriftType::kList:
    case ThriftType::kSet: {
      const uint8_t header = Byte();
      for (uint64_t left = ListSize(header); left > 0; --left) {
        SkipElement(static_cast<ThriftType>(header & 0x0f));
      }
      break;
    }
    case ThriftType::kMap:
      SkipMap();
      break;
    case ThriftType::kStruct:
      Struct([](int, ThriftType) { return false; });
      break;
    default:
      throw BadInput(where_ + ": has an element of no known type; the file is damaged");
  }
  Leave();
}

void ThriftWriter::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<uint8_t>(value | 0x80));
  bytes_.push_back(static_cast<uint8_t>(value));
}

void ThriftWriter::FieldHeader(int id, ThriftType type) {
  // ids of Parquet's structs are close together: the short form always does
  const int delta = id - last_ids_.back();
  bytes_.push_back(static_cast<uint8_t>(delta << 4 | static_cast<int>(type)));
  last_ids_.back() = id;
}

void ThriftWriter::IntElement(int64_t value) {
  Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

void ThriftWriter::BinaryElement(std::string_view text) {
  Varint(text.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
}

void ThriftWriter::Int(int id, ThriftType type, int64_t value) {
  FieldHeader(id, type);
  IntElement(value);
}

void ThriftWriter::Binary(int id, std::string_view text) {
  FieldHeader(id, ThriftType::kBinary);
  BinaryElement(text);
}

void ThriftWriter::BeginStruct(int id) {
  FieldHeader(id, ThriftType::kStruct);
  last_ids_.push_back(0);
}

void ThriftWriter::EndStruct() {
  bytes_.push_back(0);
  last_ids_.pop_back();
}

void ThriftWriter::BeginList(int id, ThriftType type, size_t size) {
  FieldHeader(id, ThriftType::kList);
  bytes_.push_back(static_cast<uint8_t>((size < 15 ? size : 15) << 4 | static_cast<size_t>(type)));
  if (size >= 15) Varint(size);
}

std::vector<uint8_t> ThriftWriter::Finish() {
  bytes_.push_back(0);
  return std::move(bytes_);
}

}  // namespace mjp::parquet
