#include "datasets/parquet/reader.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/file.h"

namespace mjp::parquet {
namespace {

constexpr uint64_t kLargestFile = uint64_t{1} << 40;
constexpr uint64_t kLargestFooter = 64 << 20;
constexpr size_t kMostValues = size_t{1} << 26;  // of a column, in memory at a time
constexpr std::string_view kMagic = "PAR1";

// Puts the entries of pages together to rows, and keeps those that were asked for.
class RowBuilder {
 public:
  RowBuilder(const Leaf& leaf, int64_t first, int64_t count, Nulls nulls, const std::string& where,
             Column& out)
      : leaf_(leaf), first_(first), last_(first + count), nulls_(nulls), where_(where), out_(out) {}

  void Add(const Page& page, int entries) {
    size_t value = 0;
    for (size_t i = 0; i < static_cast<size_t>(entries); ++i) {
      const bool starts = page.repetition.empty() || page.repetition[i] == 0;
      const int definition =
          page.definition.empty() ? leaf_.definition : static_cast<int>(page.definition[i]);
      if (starts) ++row_;
      if (row_ < 0) throw BadInput(where_ + ": starts within a row; the file is damaged");
      const bool wanted = row_ >= first_ && row_ < last_;
      if (wanted && starts) out_.offsets.push_back(out_.offsets.back());
      if (definition == leaf_.definition) {
        if (wanted) Append(page.values, value);
        ++value;
      } else if (definition >= leaf_.element && wanted) {
        AppendNull();
      }
    }
  }
  // Rows that were passed over.
  void Skip(int rows) { row_ += rows; }
  int64_t rows() const { return row_ + 1; }

 private:
  void Append(const Values& from, size_t i) {
    if (++out_.offsets.back() > kMostValues) {
      throw BadInput(where_ + ": has more values than are read at a time");
    }
    if (!from.ints.empty()) {
      out_.values.ints.push_back(from.ints[i]);
    } else if (!from.numbers.empty()) {
      out_.values.numbers.push_back(from.numbers[i]);
    } else {
      out_.values.texts.push_back(from.texts[i]);
    }
  }

  void AppendNull() {
    if (nulls_ == Nulls::kRefused || leaf_.type != Type::kBytes) {
      throw BadInput(where_ + ": row " + std::to_string(row_) + " of its row group is null");
    }
    ++out_.offsets.back();
    out_.values.texts.emplace_back();
  }

  const Leaf& leaf_;
  const int64_t first_, last_;
  const Nulls nulls_;
  const std::string& where_;
  Column& out_;
  int64_t row_ = -1;
};

ReadAt OfFile(const std::string& path, uint64_t& size) {
  auto file = std::make_shared<RegularFile>(path, kLargestFile);
  size = file->size();
  return [file](uint64_t offset, uint64_t count) { return file->ReadAt(offset, count); };
}

}  // namespace

Reader::Reader(const std::string& path) : name_(path) {
  uint64_t size = 0;
  ReadAt read = OfFile(path, size);
  *this = Reader(std::move(read), size, path);
}

Reader::Reader(ReadAt read, uint64_t size, std::string name)
    : read_(std::move(read)), name_(std::move(name)) {
  const Error no_footer =
      BadInput(name_ +
               ": does not end as a Parquet file; its writer was stopped before it had "
               "finished, or the file is cut off");
  if (size < 12) throw no_footer;
  const std::vector<uint8_t> head = read_(0, 4), tail = read_(size - 8, 8);
  uint32_t length;
  std::memcpy(&length, tail.data(), sizeof length);
  if (std::memcmp(tail.data() + 4, "PARE", 4) == 0) {
    throw Unsupported(name_ + ": is encrypted, which is not read here");
  }
  if (std::memcmp(tail.data() + 4, kMagic.data(), 4) != 0) throw no_footer;
  if (std::memcmp(head.data(), kMagic.data(), 4) != 0 || length > size - 12 ||
      length > kLargestFooter) {
    throw BadInput(name_ + ": is not a Parquet file, or is damaged");
  }
  const uint64_t data_end = size - 8 - length;
  metadata_ = ParseMetadata(read_(data_end, length), data_end, name_);
}

const Leaf* Reader::Find(const std::string& column, const std::string& rest) const {
  const Leaf* found = nullptr;
  int leaves = 0;
  for (const Leaf& leaf : metadata_.leaves) {
    if (leaf.column != column) continue;
    if (!rest.empty() && leaf.rest == rest) return &leaf;
    if (rest.empty()) found = &leaf;
    ++leaves;
  }
  return leaves == 1 ? found : nullptr;
}

void Reader::ReadGroup(size_t group, const Leaf& leaf, int64_t first, int64_t count, Nulls nulls,
                       Column& out) const {
  const RowGroup& rows = metadata_.groups[group];
  const auto at = static_cast<size_t>(&leaf - metadata_.leaves.data());
  const std::string where = name_ + ": column \"" + leaf.Name() + "\"";
  PageWalk walk(read_, rows.columns[at], leaf, where);
  RowBuilder builder(leaf, first, count, nulls, where, out);
  while (const auto header = walk.Next()) {
    // a page of scalars has a row per value
    const bool before = leaf.repetition == 0 && builder.rows() + header->values <= first;
    const bool after = leaf.repetition == 0 && builder.rows() >= first + count;
    if (before || after) {
      builder.Skip(header->values);
      continue;
    }
    Page page = walk.Read(*header);
    builder.Add(page, header->values);
    if (leaf.type == Type::kBytes) out.memory.push_back(std::move(page.bytes));
  }
  if (builder.rows() != rows.rows) {
    throw BadInput(where + ": has " + std::to_string(builder.rows()) + " rows, its row group " +
                   std::to_string(rows.rows) + "; the file is damaged");
  }
  out.memory.push_back(walk.TakeDictionaryBytes());
}

Column Reader::Read(const Leaf& leaf, int64_t first, int64_t count, Nulls nulls) const {
  Column column;
  column.type = leaf.type;
  if (first < 0 || count < 0 || first > metadata_.rows || count > metadata_.rows - first) {
    throw BadInput(name_ + ": has " + std::to_string(metadata_.rows) + " rows, fewer than the " +
                   std::to_string(first) + " + " + std::to_string(count) + " asked for");
  }
  int64_t start = 0;  // of the row group
  for (size_t group = 0; group < metadata_.groups.size(); ++group) {
    const int64_t rows = metadata_.groups[group].rows;
    const int64_t from = std::max(first - start, int64_t{0});
    const int64_t to = std::min(first + count - start, rows);
    if (from < to) ReadGroup(group, leaf, from, to - from, nulls, column);
    start += rows;
  }
  return column;
}

}  // namespace mjp::parquet
