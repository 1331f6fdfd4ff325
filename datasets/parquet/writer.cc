#include "datasets/parquet/writer.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "datasets/parquet/compression.h"
#include "datasets/parquet/thrift.h"

namespace mjp::parquet {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr uint64_t kPageBytes = 1 << 20;  // about, before compression
constexpr int kUtf8 = 0, kListType = 3;   // Parquet's converted types

template <class T>
void Put(T value, std::vector<uint8_t>& out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// Values first ... last - 1 in PLAIN encoding.
void PutPlain(const Values& values, Type type, uint64_t first, uint64_t last,
              std::vector<uint8_t>& out) {
  if (type == Type::kBool) {
    const size_t start = out.size();
    out.resize(start + (last - first + 7) / 8);
    for (uint64_t i = first; i < last; ++i) {
      out[start + (i - first) / 8] |=
          static_cast<uint8_t>((values.ints[i] != 0) << ((i - first) % 8));
    }
    return;
  }
  for (uint64_t i = first; i < last; ++i) {
    if (type == Type::kInt64) Put(values.ints[i], out);
    if (type == Type::kFloat) Put(static_cast<float>(values.numbers[i]), out);
    if (type == Type::kDouble) Put(values.numbers[i], out);
    if (type == Type::kBytes) {
      Put(static_cast<uint32_t>(values.texts[i].size()), out);
      out.insert(out.end(), values.texts[i].begin(), values.texts[i].end());
    }
  }
}

uint64_t ValueBytes(const Values& values, Type type, uint64_t i) {
  return type == Type::kBytes ? values.texts[i].size() + 4 : 8;
}

// Where in its row each value stands, as Parquet has it: 0 starts a row, r goes on in the r-th
// list.
uint8_t RepetitionLevel(uint64_t at, const std::vector<uint64_t>& inner) {
  if (at == 0) return 0;
  uint8_t level = 1;
  uint64_t stride = 1;
  for (const uint64_t extent : inner) stride *= extent;
  for (const uint64_t extent : inner) {
    if (at % stride == 0) return level;
    stride /= extent;
    ++level;
  }
  return level;
}

void PutLevels(const std::vector<uint8_t>& levels, int most, std::vector<uint8_t>& out) {
  const int width = BitWidth(static_cast<uint64_t>(most));
  std::vector<uint8_t> runs;
  const bool same = std::all_of(levels.begin(), levels.end(),
                                [&](uint8_t level) { return level == levels.front(); });
  if (same && !levels.empty()) {
    WriteRun(levels.front(), levels.size(), width, runs);
  } else {
    WritePacked(levels, width, runs);
  }
  Put(static_cast<uint32_t>(runs.size()), out);
  out.insert(out.end(), runs.begin(), runs.end());
}

// The rows first ... last - 1 as an uncompressed page; `entries` becomes its number of values.
std::vector<uint8_t> PageBytes(const Leaf& leaf, const LeafValues& data, uint64_t first,
                               uint64_t last, int64_t& entries) {
  std::vector<uint8_t> repetition, definition;
  const bool list = leaf.repetition > 0;
  for (uint64_t row = first; row < last; ++row) {
    const uint64_t count = list ? data.offsets[row + 1] - data.offsets[row] : 1;
    for (uint64_t at = 0; at < count; ++at) {
      repetition.push_back(RepetitionLevel(at, data.inner));
      definition.push_back(static_cast<uint8_t>(leaf.definition));
    }
    if (count == 0) {  // an empty list is there, and has no element
      repetition.push_back(0);
      definition.push_back(1);
    }
  }
  std::vector<uint8_t> bytes;
  if (list) PutLevels(repetition, leaf.repetition, bytes);
  PutLevels(definition, leaf.definition, bytes);
  const uint64_t begin = list ? data.offsets[first] : first;
  const uint64_t end = list ? data.offsets[last] : last;
  PutPlain(data.values, leaf.type, begin, end, bytes);
  entries = static_cast<int64_t>(definition.size());
  return bytes;
}

std::vector<uint8_t> HeaderBytes(size_t uncompressed, const std::vector<uint8_t>& compressed,
                                 int64_t entries) {
  const uLong checksum = crc32_z(crc32_z(0, nullptr, 0), compressed.data(), compressed.size());
  ThriftWriter thrift;
  thrift.Int(1, ThriftType::kInt32, static_cast<int>(PageType::kData));
  thrift.Int(2, ThriftType::kInt32, static_cast<int64_t>(uncompressed));
  thrift.Int(3, ThriftType::kInt32, static_cast<int64_t>(compressed.size()));
  thrift.Int(4, ThriftType::kInt32, static_cast<int32_t>(static_cast<uint32_t>(checksum)));
  thrift.BeginStruct(5);
  thrift.Int(1, ThriftType::kInt32, entries);
  thrift.Int(2, ThriftType::kInt32, static_cast<int>(Encoding::kPlain));
  thrift.Int(3, ThriftType::kInt32, static_cast<int>(Encoding::kRle));
  thrift.Int(4, ThriftType::kInt32, static_cast<int>(Encoding::kRle));
  thrift.EndStruct();
  return thrift.Finish();
}

// A node of the schema; `type` is -1 for a group, `converted` -1 for none.
void PutElement(ThriftWriter& thrift, const std::string& name, int type, int repetition,
                int children, int converted) {
  thrift.BeginElement();
  if (type >= 0) thrift.Int(1, ThriftType::kInt32, type);
  if (repetition >= 0) thrift.Int(3, ThriftType::kInt32, repetition);
  thrift.Binary(4, name);
  if (children > 0) thrift.Int(5, ThriftType::kInt32, children);
  if (converted >= 0) thrift.Int(6, ThriftType::kInt32, converted);
  thrift.EndStruct();
}

size_t SchemaSize(const std::vector<Field>& fields) {
  size_t size = 1;
  for (const Field& field : fields) {
    size += field.picture ? 3 : 1 + 2 * static_cast<size_t>(field.lists);
  }
  return size;
}

void PutField(ThriftWriter& thrift, const Field& field) {
  constexpr int kOptional = static_cast<int>(Repetition::kOptional);
  constexpr int kRepeated = static_cast<int>(Repetition::kRepeated);
  constexpr int kBytes = static_cast<int>(Type::kBytes);
  if (field.picture) {
    PutElement(thrift, field.name, -1, kOptional, 2, -1);
    PutElement(thrift, "bytes", kBytes, kOptional, 0, -1);
    PutElement(thrift, "path", kBytes, kOptional, 0, kUtf8);
    return;
  }
  std::string name = field.name;
  for (int list = 0; list < field.lists; ++list) {
    PutElement(thrift, name, -1, kOptional, 1, kListType);
    PutElement(thrift, "list", -1, kRepeated, 1, -1);
    name = "element";
  }
  PutElement(thrift, name, static_cast<int>(field.type), kOptional, 0, field.text ? kUtf8 : -1);
}

void PutChunk(ThriftWriter& thrift, const ColumnChunk& chunk, const Leaf& leaf) {
  std::vector<std::string> path = {leaf.column};
  for (size_t at = 0; at < leaf.rest.size();) {
    const size_t dot = std::min(leaf.rest.find('.', at), leaf.rest.size());
    path.push_back(leaf.rest.substr(at, dot - at));
    at = dot + 1;
  }
  thrift.BeginElement();
  thrift.Int(2, ThriftType::kInt64, static_cast<int64_t>(chunk.offset));
  thrift.BeginStruct(3);
  thrift.Int(1, ThriftType::kInt32, static_cast<int>(leaf.type));
  thrift.BeginList(2, ThriftType::kInt32, 2);
  thrift.IntElement(static_cast<int>(Encoding::kPlain));
  thrift.IntElement(static_cast<int>(Encoding::kRle));
  thrift.BeginList(3, ThriftType::kBinary, path.size());
  for (const std::string& name : path) thrift.BinaryElement(name);
  thrift.Int(4, ThriftType::kInt32, static_cast<int>(chunk.codec));
  thrift.Int(5, ThriftType::kInt64, chunk.values);
  thrift.Int(6, ThriftType::kInt64, static_cast<int64_t>(chunk.uncompressed));
  thrift.Int(7, ThriftType::kInt64, static_cast<int64_t>(chunk.size));
  thrift.Int(9, ThriftType::kInt64, static_cast<int64_t>(chunk.offset));
  thrift.EndStruct();
  thrift.EndStruct();
}

}  // namespace

Writer::Writer(std::vector<Field> fields, std::map<std::string, std::string> key_values)
    : fields_(std::move(fields)), key_values_(std::move(key_values)), position_(kMagic.size()) {
  for (const Field& field : fields_) {
    if (field.picture) {
      for (const char* rest : {"bytes", "path"}) {
        leaves_.push_back({field.name, rest, Type::kBytes, 2, 0, 0});
      }
      continue;
    }
    std::string rest;
    for (int list = 0; list < field.lists; ++list)
      rest += list == 0 ? "list.element" : ".list.element";
    leaves_.push_back(
        {field.name, rest, field.type, 1 + 2 * field.lists, field.lists, 2 * field.lists});
  }
}

std::vector<uint8_t> Writer::Begin() { return {kMagic.begin(), kMagic.end()}; }

void Writer::WriteChunk(const Leaf& leaf, const LeafValues& data, int64_t rows,
                        std::vector<uint8_t>& out, ColumnChunk& chunk) const {
  const auto count = static_cast<uint64_t>(rows);
  const bool list = leaf.repetition > 0;
  const bool fits = list ? data.offsets.size() == count + 1 && data.offsets.front() == 0 &&
                               data.offsets.back() == data.values.size()
                         : data.values.size() == count;
  if (!fits) throw BadInput("column \"" + leaf.Name() + "\" has not a value for each row");
  const size_t start = out.size();
  chunk.codec = Codec::kSnappy;
  chunk.offset = position_ + start;
  for (uint64_t first = 0, last = 0; first < count; first = last) {
    uint64_t bytes = 0;
    do {
      const uint64_t begin = list ? data.offsets[last] : last;
      const uint64_t end = list ? data.offsets[last + 1] : last + 1;
      for (uint64_t i = begin; i < end; ++i) bytes += ValueBytes(data.values, leaf.type, i);
    } while (++last < count && bytes < kPageBytes);
    int64_t entries = 0;
    const std::vector<uint8_t> page = PageBytes(leaf, data, first, last, entries);
    const std::vector<uint8_t> compressed = CompressSnappy(page);
    const std::vector<uint8_t> header = HeaderBytes(page.size(), compressed, entries);
    out.insert(out.end(), header.begin(), header.end());
    out.insert(out.end(), compressed.begin(), compressed.end());
    chunk.values += entries;
    chunk.uncompressed += header.size() + page.size();
  }
  chunk.size = out.size() - start;
}

std::vector<uint8_t> Writer::AddRowGroup(int64_t rows, std::span<const LeafValues> leaves) {
  if (leaves.size() != leaves_.size()) throw BadInput("a row group has not all columns");
  RowGroup group{rows, std::vector<ColumnChunk>(leaves.size())};
  std::vector<uint8_t> out;
  for (size_t i = 0; i < leaves.size(); ++i) {
    WriteChunk(leaves_[i], leaves[i], rows, out, group.columns[i]);
  }
  groups_.push_back(std::move(group));
  position_ += out.size();
  return out;
}

void Writer::Continue(const Metadata& metadata, int64_t rows, const std::string& where) {
  bool same = metadata.leaves.size() == leaves_.size();
  for (size_t i = 0; same && i < leaves_.size(); ++i) {
    same = metadata.leaves[i].Name() == leaves_[i].Name() &&
           metadata.leaves[i].type == leaves_[i].type;
  }
  groups_.clear();
  for (size_t i = 0; same && rows > 0 && i < metadata.groups.size(); ++i) {
    groups_.push_back(metadata.groups[i]);
    rows -= groups_.back().rows;
    for (const ColumnChunk& chunk : groups_.back().columns) {
      position_ = std::max(position_, chunk.offset + chunk.size);
    }
  }
  if (!same || rows != 0) {
    throw BadInput(where +
                   ": has more rows than its episodes, and was not written by this program");
  }
}

std::vector<uint8_t> Writer::Footer() const {
  ThriftWriter thrift;
  int64_t rows = 0;
  for (const RowGroup& group : groups_) rows += group.rows;
  thrift.Int(1, ThriftType::kInt32, 2);
  thrift.BeginList(2, ThriftType::kStruct, SchemaSize(fields_));
  PutElement(thrift, "schema", -1, -1, static_cast<int>(fields_.size()), -1);
  for (const Field& field : fields_) PutField(thrift, field);
  thrift.Int(3, ThriftType::kInt64, rows);
  thrift.BeginList(4, ThriftType::kStruct, groups_.size());
  for (const RowGroup& group : groups_) {
    uint64_t uncompressed = 0, size = 0;
    thrift.BeginElement();
    thrift.BeginList(1, ThriftType::kStruct, group.columns.size());
    for (size_t i = 0; i < group.columns.size(); ++i) {
      PutChunk(thrift, group.columns[i], leaves_[i]);
      uncompressed += group.columns[i].uncompressed;
      size += group.columns[i].size;
    }
    thrift.Int(2, ThriftType::kInt64, static_cast<int64_t>(uncompressed));
    thrift.Int(3, ThriftType::kInt64, group.rows);
    thrift.Int(6, ThriftType::kInt64, static_cast<int64_t>(size));
    thrift.EndStruct();
  }
  thrift.BeginList(5, ThriftType::kStruct, key_values_.size());
  for (const auto& [key, value] : key_values_) {
    thrift.BeginElement();
    thrift.Binary(1, key);
    thrift.Binary(2, value);
    thrift.EndStruct();
  }
  thrift.Binary(6, "mjpolicy");
  std::vector<uint8_t> footer = thrift.Finish();
  Put(static_cast<uint32_t>(footer.size()), footer);
  footer.insert(footer.end(), kMagic.begin(), kMagic.end());
  return footer;
}

}  // namespace mjp::parquet
