#include "datasets/parquet/metadata.h"

#include <optional>
#include <set>

#include "base/error.h"
#include "datasets/parquet/thrift.h"

namespace mjp::parquet {
namespace {

constexpr int kDeepestGroup = 32;
constexpr size_t kMostElements = 40000;  // of a schema
constexpr size_t kLongestName = 1000;

struct SchemaElement {
  std::optional<int> type;
  Repetition repetition = Repetition::kRequired;
  int children = 0;
  bool is_unsigned = false;
  std::string name;
};

// Parquet's converted types UINT_8 ... UINT_64, and the field INTEGER of its logical types.
constexpr int kFirstUnsigned = 11, kLastUnsigned = 14, kInteger = 10;

// Whether a logical type is of integers without a sign.
bool ReadIsUnsigned(ThriftReader& thrift) {
  bool is_unsigned = false;
  thrift.Struct([&](int kind, ThriftType type) {
    if (kind != kInteger || type != ThriftType::kStruct) return false;
    thrift.Struct([&](int id, ThriftType is_signed) {
      is_unsigned = is_unsigned || (id == 2 && is_signed == ThriftType::kFalse);
      return false;
    });
    return true;
  });
  return is_unsigned;
}

// A chunk as the footer has it, before it is held against the schema.
struct RawChunk {
  bool elsewhere = false;  // in another file
  bool encrypted = false;
  bool described = false;
  int type = -1, codec = -1;
  int64_t values = -1, size = -1, uncompressed = -1, data_page = -1, dictionary_page = 0;
  std::string path;
};

struct RawRowGroup {
  int64_t rows = -1;
  std::vector<RawChunk> columns;
};

SchemaElement ReadSchemaElement(ThriftReader& thrift, const std::string& where) {
  SchemaElement element;
  thrift.Struct([&](int id, ThriftType type) {
    const bool number = type == ThriftType::kInt32;
    if (id == 1 && number) {
      element.type = thrift.Int32();
    } else if (id == 3 && number) {
      const int32_t repetition = thrift.Int32();
      if (repetition < 0 || repetition > 2) throw BadInput(where + ": has an unknown repetition");
      element.repetition = static_cast<Repetition>(repetition);
    } else if (id == 4 && type == ThriftType::kBinary) {
      element.name = thrift.Binary();
    } else if (id == 5 && number) {
      element.children = thrift.Int32();
    } else if (id == 6 && number) {
      const int32_t converted = thrift.Int32();
      element.is_unsigned |= converted >= kFirstUnsigned && converted <= kLastUnsigned;
    } else if (id == 10 && type == ThriftType::kStruct) {
      element.is_unsigned |= ReadIsUnsigned(thrift);
    } else {
      return false;
    }
    return true;
  });
  if (element.name.empty() || element.name.size() > kLongestName) {
    throw BadInput(where + ": has a column without a name, or with too long a one");
  }
  return element;
}

bool ReadChunkMetadata(ThriftReader& thrift, RawChunk& chunk, int id, ThriftType type) {
  if (type == ThriftType::kInt32 && id == 1) {
    chunk.type = thrift.Int32();
  } else if (type == ThriftType::kInt32 && id == 4) {
    chunk.codec = thrift.Int32();
  } else if (type == ThriftType::kList && id == 3) {
    thrift.List(ThriftType::kBinary, [&] {
      chunk.path += (chunk.path.empty() ? "" : ".") + std::string(thrift.Binary());
    });
  } else if (type == ThriftType::kInt64 && id == 5) {
    chunk.values = thrift.Int64();
  } else if (type == ThriftType::kInt64 && id == 6) {
    chunk.uncompressed = thrift.Int64();
  } else if (type == ThriftType::kInt64 && id == 7) {
    chunk.size = thrift.Int64();
  } else if (type == ThriftType::kInt64 && id == 9) {
    chunk.data_page = thrift.Int64();
  } else if (type == ThriftType::kInt64 && id == 11) {
    chunk.dictionary_page = thrift.Int64();
  } else {
    return false;
  }
  return true;
}

RawChunk ReadChunk(ThriftReader& thrift, const std::string& where) {
  RawChunk chunk;
  thrift.Struct([&](int id, ThriftType type) {
    if (id == 1) chunk.elsewhere = true;
    if (id == 8 || id == 9) chunk.encrypted = true;
    if (id != 3 || type != ThriftType::kStruct) return false;
    chunk.described = true;
    thrift.Struct([&](int inner, ThriftType inner_type) {
      return ReadChunkMetadata(thrift, chunk, inner, inner_type);
    });
    return true;
  });
  if (!chunk.described) throw BadInput(where + ": has a column without a description");
  return chunk;
}

RawRowGroup ReadRowGroup(ThriftReader& thrift, const std::string& where) {
  RawRowGroup group;
  thrift.Struct([&](int id, ThriftType type) {
    if (id == 1 && type == ThriftType::kList) {
      thrift.List(ThriftType::kStruct, [&] { group.columns.push_back(ReadChunk(thrift, where)); });
    } else if (id == 3 && type == ThriftType::kInt64) {
      group.rows = thrift.Int64();
    } else {
      return false;
    }
    return true;
  });
  return group;
}

std::pair<std::string, std::string> ReadKeyValue(ThriftReader& thrift) {
  std::pair<std::string, std::string> result;
  thrift.Struct([&](int id, ThriftType type) {
    if (type != ThriftType::kBinary || (id != 1 && id != 2)) return false;
    (id == 1 ? result.first : result.second) = thrift.Binary();
    return true;
  });
  return result;
}

// Turns the list of elements, which is a tree in depth-first order, into leaves.
class SchemaWalk {
 public:
  SchemaWalk(const std::vector<SchemaElement>& elements, const std::string& where)
      : elements_(elements), where_(where) {}

  std::vector<Leaf> Leaves() {
    if (elements_.empty()) throw BadInput(where_ + ": has no schema; the file is damaged");
    const int columns = elements_[next_++].children;
    std::set<std::string> names;
    for (int i = 0; i < columns; ++i) {
      if (next_ >= elements_.size()) break;
      Leaf leaf;
      leaf.column = elements_[next_].name;
      if (!names.insert(leaf.column).second) {
        throw BadInput(where_ + ": has two columns \"" + leaf.column + "\"");
      }
      Walk(leaf, 0);
    }
    if (next_ != elements_.size() || columns != static_cast<int>(names.size())) {
      throw BadInput(where_ + ": its schema is not a tree; the file is damaged");
    }
    return std::move(leaves_);
  }

 private:
  // `leaf` has the path so far; takes the next element and all below it.
  void Walk(Leaf leaf, int depth) {
    if (next_ >= elements_.size() || depth > kDeepestGroup) {
      throw BadInput(where_ + ": its schema is not a tree; the file is damaged");
    }
    const SchemaElement& element = elements_[next_++];
    if (depth > 0) leaf.rest += (leaf.rest.empty() ? "" : ".") + element.name;
    if (element.repetition != Repetition::kRequired) ++leaf.definition;
    if (element.repetition == Repetition::kRepeated) {
      ++leaf.repetition;
      leaf.element = leaf.definition;
    }
    if (element.children > 0) {
      for (int i = 0; i < element.children; ++i) Walk(leaf, depth + 1);
      return;
    }
    if (!element.type || *element.type < 0 || *element.type > 7) {
      throw BadInput(where_ + ": column \"" + leaf.Name() + "\" has no known type");
    }
    leaf.type = static_cast<Type>(*element.type);
    leaf.is_unsigned = element.is_unsigned;
    leaves_.push_back(std::move(leaf));
  }

  const std::vector<SchemaElement>& elements_;
  const std::string& where_;
  size_t next_ = 0;
  std::vector<Leaf> leaves_;
};

ColumnChunk CheckChunk(const RawChunk& raw, const Leaf& leaf, uint64_t data_end,
                       const std::string& where) {
  const std::string column = where + ": column \"" + leaf.Name() + "\": ";
  if (raw.encrypted) throw Unsupported(column + "is encrypted, which is not read here");
  if (raw.elsewhere) throw Unsupported(column + "lies in another file, which is not read here");
  if (raw.path != leaf.Name() || raw.type != static_cast<int>(leaf.type)) {
    throw BadInput(column + "is not as the schema has it; the file is damaged");
  }
  ColumnChunk chunk;
  chunk.codec = static_cast<Codec>(raw.codec);
  if (chunk.codec != Codec::kNone && chunk.codec != Codec::kSnappy && chunk.codec != Codec::kGzip &&
      chunk.codec != Codec::kZstd) {
    throw Unsupported(column + "is compressed by codec " + std::to_string(raw.codec) +
                      "; none, snappy, gzip and zstd are read");
  }
  const bool has_dictionary = raw.dictionary_page > 0 && raw.dictionary_page < raw.data_page;
  const int64_t offset = has_dictionary ? raw.dictionary_page : raw.data_page;
  if (offset < 4 || raw.size < 0 || raw.values < 0 || raw.uncompressed < 0 ||
      static_cast<uint64_t>(offset) > data_end ||
      static_cast<uint64_t>(raw.size) > data_end - static_cast<uint64_t>(offset)) {
    throw BadInput(column + "lies outside of the file; it is damaged or cut off");
  }
  chunk.values = raw.values;
  chunk.offset = static_cast<uint64_t>(offset);
  chunk.size = static_cast<uint64_t>(raw.size);
  chunk.uncompressed = static_cast<uint64_t>(raw.uncompressed);
  return chunk;
}

// What the footer says, not yet held against itself.
struct RawMetadata {
  int64_t rows = -1;
  bool encrypted = false;
  std::vector<SchemaElement> schema;
  std::vector<RawRowGroup> groups;
  std::map<std::string, std::string> key_values;
};

RawMetadata ReadRaw(std::span<const uint8_t> footer, const std::string& where) {
  RawMetadata raw;
  ThriftReader thrift(footer, where + ": footer");
  thrift.Struct([&](int id, ThriftType type) {
    if (id == 2 && type == ThriftType::kList) {
      thrift.List(ThriftType::kStruct,
                  [&] { raw.schema.push_back(ReadSchemaElement(thrift, where)); });
      if (raw.schema.size() > kMostElements) throw BadInput(where + ": has too many columns");
    } else if (id == 3 && type == ThriftType::kInt64) {
      raw.rows = thrift.Int64();
    } else if (id == 4 && type == ThriftType::kList) {
      thrift.List(ThriftType::kStruct, [&] { raw.groups.push_back(ReadRowGroup(thrift, where)); });
    } else if (id == 5 && type == ThriftType::kList) {
      thrift.List(ThriftType::kStruct, [&] { raw.key_values.insert(ReadKeyValue(thrift)); });
    } else {
      raw.encrypted = raw.encrypted || id == 8;
      return false;
    }
    return true;
  });
  return raw;
}

}  // namespace

Metadata ParseMetadata(std::span<const uint8_t> footer, uint64_t data_end,
                       const std::string& where) {
  RawMetadata raw = ReadRaw(footer, where);
  if (raw.encrypted) throw Unsupported(where + ": is encrypted, which is not read here");
  Metadata metadata;
  metadata.rows = raw.rows;
  metadata.key_values = std::move(raw.key_values);
  metadata.leaves = SchemaWalk(raw.schema, where).Leaves();
  int64_t rows = 0;
  for (const RawRowGroup& from : raw.groups) {
    RowGroup group{from.rows, {}};
    if (from.rows < 0 || from.rows > raw.rows - rows ||
        from.columns.size() != metadata.leaves.size()) {
      throw BadInput(where + ": a row group is not as the footer has it; the file is damaged");
    }
    rows += from.rows;
    for (size_t i = 0; i < from.columns.size(); ++i) {
      group.columns.push_back(CheckChunk(from.columns[i], metadata.leaves[i], data_end, where));
    }
    metadata.groups.push_back(std::move(group));
  }
  if (rows != raw.rows) {
    throw BadInput(where + ": its row groups have " + std::to_string(rows) + " rows, its footer " +
                   std::to_string(raw.rows) + "; the file is damaged");
  }
  return metadata;
}

}  // namespace mjp::parquet
