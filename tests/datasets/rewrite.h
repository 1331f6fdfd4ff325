#ifndef TESTS_DATASETS_REWRITE_H_
#define TESTS_DATASETS_REWRITE_H_

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "datasets/parquet/reader.h"
#include "datasets/parquet/writer.h"

namespace mjp_test {

// Writes a table of a data set of RecordedInfo anew, each leaf and its field changed by `change`,
// which adds `more` rows to each.
inline void Rewrite(const std::string& path,
                    const std::function<void(const std::string& leaf, mjp::parquet::Field&,
                                             mjp::parquet::LeafValues&)>& change,
                    int64_t more = 0) {
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
  const int64_t rows = reader.metadata().rows + more;
  for (const auto& part : {writer.AddRowGroup(rows, leaves), writer.Footer()}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  mjp::WriteFileAtomically(path, bytes);
}

// Appends the last row of a data file of RecordedInfo to it once more.
inline void RepeatLastRow(const std::string& path) {
  const auto repeat = [](auto& values, size_t count) {
    if (values.empty()) return;
    const std::vector last(values.end() - static_cast<ptrdiff_t>(count), values.end());
    values.insert(values.end(), last.begin(), last.end());
  };
  Rewrite(
      path,
      [&](const std::string&, mjp::parquet::Field&, mjp::parquet::LeafValues& leaf) {
        const size_t end = leaf.offsets.empty() ? 0 : leaf.offsets.back();
        const size_t count = leaf.offsets.empty() ? 1 : end - leaf.offsets[leaf.offsets.size() - 2];
        if (!leaf.offsets.empty()) leaf.offsets.push_back(end + count);
        repeat(leaf.values.ints, count);
        repeat(leaf.values.numbers, count);
        repeat(leaf.values.texts, count);
      },
      1);
}

}  // namespace mjp_test

#endif  // TESTS_DATASETS_REWRITE_H_
