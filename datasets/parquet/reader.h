#ifndef DATASETS_PARQUET_READER_H_
#define DATASETS_PARQUET_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/parquet/metadata.h"
#include "datasets/parquet/pages.h"

namespace mjp::parquet {

// Rows of one leaf. Row i has the values offsets[i] ... offsets[i + 1] - 1: one each of a scalar,
// any number of a list.
struct Column {
  Type type = Type::kInt64;
  Values values;
  std::vector<uint64_t> offsets = {0};
  std::vector<std::vector<uint8_t>> memory;  // what values.texts point into

  size_t rows() const { return offsets.size() - 1; }
};

// What becomes of a null: an Error, or (texts alone) an empty text.
enum class Nulls { kRefused, kEmpty };

// A Parquet file: the subset that LeRobot, pyarrow and `datasets` write by default. Errors start
// with the file's name; none of its numbers is believed before it is checked.
class Reader {
 public:
  // Opens a file, reads its footer. Throws Error if that is missing (a writer that was killed
  // leaves such files), malformed or of a kind that is not read here.
  explicit Reader(const std::string& path);
  // The same for `size` bytes that `read` gives; `name` is how errors call them.
  Reader(ReadAt read, uint64_t size, std::string name);

  const Metadata& metadata() const { return metadata_; }
  const std::string& name() const { return name_; }

  // The leaf at `rest` of a column; a list's is at "list.element" (or "list.item", "bag.array..."
  // of other writers), which `rest` = "" finds too. Null where there is none.
  const Leaf* Find(const std::string& column, const std::string& rest = "") const;

  // Rows first ... first + count - 1 of the file; pages before and after are not decompressed.
  // Throws Error naming the column, for a null also the row.
  Column Read(const Leaf& leaf, int64_t first, int64_t count, Nulls nulls = Nulls::kRefused) const;
  // All rows of the file.
  Column ReadAll(const Leaf& leaf, Nulls nulls = Nulls::kRefused) const {
    return Read(leaf, 0, metadata_.rows, nulls);
  }

 private:
  void ReadGroup(size_t group, const Leaf& leaf, int64_t first, int64_t count, Nulls nulls,
                 Column& out) const;

  ReadAt read_;
  std::string name_;
  Metadata metadata_;
};

}  // namespace mjp::parquet

#endif  // DATASETS_PARQUET_READER_H_
