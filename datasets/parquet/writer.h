#ifndef DATASETS_PARQUET_WRITER_H_
#define DATASETS_PARQUET_WRITER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "datasets/parquet/encodings.h"
#include "datasets/parquet/metadata.h"

namespace mjp::parquet {

// A column of a table to be written. All may be null for readers, as pyarrow's are; none is.
struct Field {
  std::string name;
  Type type = Type::kInt64;  // bool, int64, float, double or bytes
  bool text = false;         // bytes are UTF-8
  int lists = 0;             // lists within each other
  bool picture = false;      // a group of two byte arrays: "bytes" a file, "path" its name
};

// Values of a leaf in a row group. A field has one leaf, a picture two.
struct LeafValues {
  Values values;
  std::vector<uint64_t> offsets;  // of a list: row i has values offsets[i] ... offsets[i + 1] - 1
  std::vector<uint64_t> inner;    // of lists within lists: extents of the second and further
};

// Makes a Parquet file of PLAIN pages, version 1, compressed by Snappy, with checksums. Its bytes
// are, in order: Begin(), those of each row group, Footer(). A file that got another row group
// differs from the one before only in its footer, so all that is on disk can be kept.
class Writer {
 public:
  Writer(std::vector<Field> fields, std::map<std::string, std::string> key_values);

  static std::vector<uint8_t> Begin();
  // The bytes of a row group, which lie behind all earlier ones. `leaves` are in the fields' order.
  // Throws Error naming the column whose values do not fit the rows.
  std::vector<uint8_t> AddRowGroup(int64_t rows, std::span<const LeafValues> leaves);
  std::vector<uint8_t> Footer() const;
  // Goes on with a file that such a Writer wrote, behind its first `rows` rows. Throws Error naming
  // `where` unless they are whole row groups of the same columns.
  void Continue(const Metadata& metadata, int64_t rows, const std::string& where);

  // Bytes before the footer.
  uint64_t size() const { return position_; }

 private:
  void WriteChunk(const Leaf& leaf, const LeafValues& data, int64_t rows, std::vector<uint8_t>& out,
                  ColumnChunk& chunk) const;

  std::vector<Field> fields_;
  std::map<std::string, std::string> key_values_;
  std::vector<Leaf> leaves_;
  std::vector<RowGroup> groups_;
  uint64_t position_;
};

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_WRITER_H_
