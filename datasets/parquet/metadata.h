#ifndef DATASETS_PARQUET_METADATA_H_
#define DATASETS_PARQUET_METADATA_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

// What a Parquet file says of itself in its footer: apache/parquet-format, parquet.thrift.

namespace mjp::parquet {

// Parquet's numbers.
enum class Type {
  kBool = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kBytes = 6,
  kFixedBytes = 7,
};
enum class Codec { kNone = 0, kSnappy = 1, kGzip = 2, kZstd = 6 };
enum class Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8 };
enum class PageType { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };
enum class Repetition { kRequired = 0, kOptional = 1, kRepeated = 2 };

// A column of values, at the end of a path of groups.
struct Leaf {
  std::string column;  // the name of the table's column, which may have dots
  std::string rest;    // the path within it: "" of a scalar, "list.element", "bytes"
  Type type = Type::kInt64;
  int definition = 0;        // the level at which a value is there
  int repetition = 0;        // lists within each other
  int element = 0;           // the definition level from which on a list has an element here
  bool is_unsigned = false;  // of kInt32, kInt64

  std::string Name() const { return rest.empty() ? column : column + "." + rest; }
};

struct ColumnChunk {
  Codec codec = Codec::kNone;
  int64_t values = 0;  // with those that are null, and one for each empty list
  uint64_t offset = 0;
  uint64_t size = 0;          // bytes in the file
  uint64_t uncompressed = 0;  // bytes of its pages
};

struct RowGroup {
  int64_t rows = 0;
  std::vector<ColumnChunk> columns;  // one per leaf, in their order
};

struct Metadata {
  int64_t rows = 0;
  std::vector<Leaf> leaves;
  std::vector<RowGroup> groups;
  std::map<std::string, std::string> key_values;
};

// Parses a footer, without its length and the magic, of a file whose pages end at byte `data_end`.
// Throws Error "where: what" for what is malformed, refers to bytes outside of the file, or needs
// what is not read here (other files, encryption, types and codecs that are not listed above).
Metadata ParseMetadata(std::span<const uint8_t> footer, uint64_t data_end,
                       const std::string& where);

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_METADATA_H_
