#ifndef DATASETS_PARQUET_THRIFT_H_
#define DATASETS_PARQUET_THRIFT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Thrift's compact protocol, in which Parquet writes its footer and page headers:
// apache/thrift, doc/specs/thrift-compact-protocol.md.

namespace mjp::parquet {

enum class ThriftType {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kByte = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
};

// Reads from bytes that nobody vouches for. Whatever does not fit them is an Error that starts with
// `where`; a list never claims more elements than bytes are left.
class ThriftReader {
 public:
  ThriftReader(std::span<const uint8_t> bytes, std::string where);

  // Reads a struct: calls `read(id, type)` for each field, which reads the value and returns true,
  // or returns false to have it skipped.
  template <class Read>
  void Struct(Read&& read) {
    Enter();
    int id = 0;
    for (ThriftType type; (type = FieldHeader(id)) != ThriftType::kStop;) {
      if (!read(id, type)) Skip(type);
    }
    Leave();
  }

  // Reads a list whose elements are of `type`: calls `read()` for each.
  template <class Read>
  void List(ThriftType type, Read&& read) {
    Enter();
    for (uint64_t left = ListHeader(type); left > 0; --left) read();
    Leave();
  }

  // A signed integer of any width; Int32 refuses what does not fit.
  int64_t Int64();
  int32_t Int32();
  std::string_view Binary();
  // Bytes read so far.
  size_t position() const { return position_; }

 private:
  void Enter();
  void Leave() { --depth_; }
  uint8_t Byte();
  uint64_t Varint();
  void Advance(uint64_t count);
  ThriftType FieldHeader(int& id);
  uint64_t ListHeader(ThriftType type);
  uint64_t ListSize(uint8_t header);
  void Skip(ThriftType type);
  void SkipElement(ThriftType type);
  void SkipMap();

  std::span<const uint8_t> bytes_;
  std::string where_;
  size_t position_ = 0;
  int depth_ = 0;
};

// Writes structs field by field, ids in ascending order.
class ThriftWriter {
 public:
  void Int(int id, ThriftType type, int64_t value);
  void Binary(int id, std::string_view text);
  // The fields until EndStruct are those of field `id`.
  void BeginStruct(int id);
  void EndStruct();
  // `size` elements follow: structs by BeginElement and EndStruct, or IntElement, BinaryElement.
  void BeginList(int id, ThriftType type, size_t size);
  void BeginElement() { last_ids_.push_back(0); }
  void IntElement(int64_t value);
  void BinaryElement(std::string_view text);

  // Everything written so far, ended as a struct.
  std::vector<uint8_t> Finish();

 private:
  void FieldHeader(int id, ThriftType type);
  void Varint(uint64_t value);

  std::vector<uint8_t> bytes_;
  std::vector<int> last_ids_ = {0};
};

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_THRIFT_H_
