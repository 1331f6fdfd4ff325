#ifndef TESTS_DATASETS_REWRITE_H_
#define TESTS_DATASETS_REWRITE_H_

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/parquet/reader.h"
#include "datasets/parquet/writer.h"

namespace mjp_test {

// Writes a table of a data set of RecordedInfo anew, each leaf and its field changed by `change`.
inline void Rewrite(const std::string& path,
                    const std::function<void(const std::string& leaf, mjp::parquet::Field&,
                                             mjp::parquet::LeafValues&)>& change) {
  namespace parquet = mjp::parquet;
  const parquet::Reader reader(path);
  std::vector<parquet::Column> columns;
  std::vector<parquet::LeafValues> leaves;
  std::vector<parquet::Field> fields;
  for (const parquet::Leaf& leaf : reader.metadata().leaves) {
    columns.push_back(reader.ReadAll(leaf));
    leaves.push_back({columns.back().values, {}, {}});
    if (leaf.repetition > 0) leaves.back().offsets = columns.back().offsets;
    if (leaf.repetition > 1) leaves.back().inner = {2};
    if (leaf.repetition > 2) leaves.back().inner = {1, 1};
    parquet::Field field = {.name = leaf.column,
                            .type = leaf.type,
                            .text = leaf.column == "note" || leaf.column.starts_with("task"),
                            .lists = leaf.repetition,
                            .picture = leaf.rest == "bytes"};
    change(leaf.Name(), field, leaves.back());
    if (leaf.rest != "path") fields.push_back(field);
  }
  parquet::Writer writer(fields, reader.metadata().key_values);
  std::vector<uint8_t> bytes = parquet::Writer::Begin();
  for (const auto& part : {writer.AddRowGroup(reader.metadata().rows, leaves), writer.Footer()}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  mjp::WriteFileAtomically(path, bytes);
}

}  // namespace mjp_test

#endif  // TESTS_DATASETS_REWRITE_H_
