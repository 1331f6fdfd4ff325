#include "datasets/parquet/pages.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "datasets/parquet/compression.h"
#include "datasets/parquet/thrift.h"

namespace mjp::parquet {
namespace {

constexpr int kLargestPage = 128 << 20;  // bytes
constexpr uint64_t kUsualHeader = 256, kLongestHeader = 64 << 10;

// A number of a header, which must be within 0 ... most.
int Checked(int32_t value, int64_t most, const std::string& where) {
  if (value < 0 || value > most) {
    throw BadInput(where + ": a page header has the number " + std::to_string(value) +
                   "; the file is damaged");
  }
  return value;
}

void ReadDetails(ThriftReader& thrift, PageHeader& header, bool version2,
                 const std::string& where) {
  const int encoding = version2 ? 4 : 2;
  thrift.Struct([&](int id, ThriftType type) {
    if (version2 && id == 7) {
      header.compressed = type != ThriftType::kFalse;
      return false;
    }
    if (type != ThriftType::kInt32) return false;
    if (id == 1) {
      header.values = Checked(thrift.Int32(), kLargestPage, where);
    } else if (id == encoding) {
      header.encoding = static_cast<Encoding>(thrift.Int32());
    } else if (version2 && (id == 5 || id == 6)) {
      header.level_bytes[id == 5] = Checked(thrift.Int32(), kLargestPage, where);
    } else if (!version2 && (id == 3 || id == 4)) {
      const auto levels = static_cast<Encoding>(thrift.Int32());
      // a dictionary's third field is a boolean
      if (header.type == PageType::kData && levels != Encoding::kRle) {
        throw Unsupported(where + ": has levels in a deprecated encoding, which is not read here");
      }
    } else {
      return false;
    }
    return true;
  });
}

const char* EncodingName(Encoding encoding) {
  switch (static_cast<int>(encoding)) {
    case 4:
      return "BIT_PACKED";
    case 5:
      return "DELTA_BINARY_PACKED";
    case 6:
      return "DELTA_LENGTH_BYTE_ARRAY";
    case 7:
      return "DELTA_BYTE_ARRAY";
    case 9:
      return "BYTE_STREAM_SPLIT";
    default:
      return "of another kind";
  }
}

std::vector<uint32_t> CheckedLevels(std::span<const uint8_t> bytes, int most, size_t count,
                                    const std::string& where) {
  std::vector<uint32_t> levels =
      ReadRuns(bytes, BitWidth(static_cast<uint64_t>(most)), count, where);
  for (const uint32_t level : levels) {
    if (level > static_cast<uint32_t>(most)) {
      throw BadInput(where + ": has a level that its schema has not; the file is damaged");
    }
  }
  return levels;
}

}  // namespace

PageWalk::PageWalk(const ReadAt& read, const ColumnChunk& chunk, const Leaf& leaf,
                   const std::string& where)
    : read_(read), chunk_(chunk), leaf_(leaf), where_(where) {}

PageHeader PageWalk::ParseHeader(std::span<const uint8_t> bytes, uint64_t& size) const {
  PageHeader header;
  int type = -1;
  ThriftReader thrift(bytes, where_ + ": page header");
  thrift.Struct([&](int id, ThriftType field) {
    if (field == ThriftType::kStruct && (id == 5 || id == 7 || id == 8)) {
      ReadDetails(thrift, header, id == 8, where_);
      return true;
    }
    if (field != ThriftType::kInt32 || id > 4) return false;
    const int32_t value = thrift.Int32();
    if (id == 1) header.type = static_cast<PageType>(type = value);
    if (id == 2) header.uncompressed = Checked(value, kLargestPage, where_);
    if (id == 3) header.size = Checked(value, kLargestPage, where_);
    if (id == 4) header.checksum = static_cast<uint32_t>(value);
    return true;
  });
  Checked(type, 3, where_);
  size = thrift.position();
  return header;
}

PageHeader PageWalk::ReadHeader() {
  PageHeader header;
  uint64_t size = 0;
  const uint64_t left = chunk_.size - position_;
  const auto read = [&](uint64_t count) {
    header = ParseHeader(read_(chunk_.offset + position_, std::min(count, left)), size);
  };
  try {
    read(kUsualHeader);
  } catch (const Error&) {
    // one with long statistics, or damaged
    if (left <= kUsualHeader) throw;
    read(kLongestHeader);
  }
  body_ = position_ + size;
  if (static_cast<uint64_t>(header.size) > chunk_.size - body_) {
    throw BadInput(where_ + ": a page reaches beyond its column; the file is damaged");
  }
  position_ = body_ + static_cast<uint64_t>(header.size);
  return header;
}

std::optional<PageHeader> PageWalk::Next() {
  while (values_ < chunk_.values) {
    if (position_ >= chunk_.size) {
      throw BadInput(where_ + ": has " + std::to_string(values_) + " values, not the " +
                     std::to_string(chunk_.values) + " of the footer; the file is damaged");
    }
    const PageHeader header = ReadHeader();
    if (header.type == PageType::kDictionary) {
      ReadDictionary(header);
    } else if (header.type != PageType::kIndex) {
      if (header.values > chunk_.values - values_) {
        throw BadInput(where_ + ": has more values than the footer says; the file is damaged");
      }
      values_ += header.values;
      return header;
    }
  }
  return {};
}

std::vector<uint8_t> PageWalk::Body(const PageHeader& header) const {
  std::vector<uint8_t> bytes = read_(chunk_.offset + body_, static_cast<uint64_t>(header.size));
  if (header.checksum &&
      crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()) != *header.checksum) {
    throw BadInput(where_ + ": a page differs from its checksum; the file is damaged");
  }
  return bytes;
}

void PageWalk::ReadDictionary(const PageHeader& header) {
  if (has_dictionary_) throw BadInput(where_ + ": has two dictionaries; the file is damaged");
  if (header.encoding != Encoding::kPlain && header.encoding != Encoding::kPlainDictionary) {
    throw Unsupported(where_ + ": its dictionary is " + EncodingName(header.encoding));
  }
  has_dictionary_ = true;
  dictionary_bytes_ =
      Decompress(chunk_.codec, Body(header), static_cast<size_t>(header.uncompressed), where_);
  ByteCursor cursor{dictionary_bytes_, where_};
  ReadPlain(cursor, leaf_, static_cast<size_t>(header.values), dictionary_);
}

void PageWalk::ReadLevels(const PageHeader& header, ByteCursor& cursor, Page& page) const {
  const bool version2 = header.type == PageType::kDataV2;
  const auto count = static_cast<size_t>(header.values);
  for (const bool definition : {false, true}) {
    const int most = definition ? leaf_.definition : leaf_.repetition;
    const auto stored = static_cast<uint64_t>(header.level_bytes[definition ? 1 : 0]);
    if (most == 0 && !version2) continue;
    const auto bytes = cursor.Take(version2 ? stored : cursor.TakeUint32());
    if (most == 0) continue;
    (definition ? page.definition : page.repetition) = CheckedLevels(bytes, most, count, where_);
  }
}

Page PageWalk::Read(const PageHeader& header) {
  Page page;
  std::vector<uint8_t> body = Body(header);
  const auto whole = static_cast<size_t>(header.uncompressed);
  if (header.type == PageType::kDataV2) {  // levels are in front of what is compressed
    const size_t levels =
        static_cast<size_t>(header.level_bytes[0]) + static_cast<size_t>(header.level_bytes[1]);
    if (levels > body.size() || levels > whole) {
      throw BadInput(where_ + ": a page is shorter than its levels; the file is damaged");
    }
    const std::span<const uint8_t> values(body.begin() + static_cast<ptrdiff_t>(levels),
                                          body.end());
    page.bytes.assign(body.begin(), body.begin() + static_cast<ptrdiff_t>(levels));
    const Codec codec = header.compressed ? chunk_.codec : Codec::kNone;
    const std::vector<uint8_t> plain = Decompress(codec, values, whole - levels, where_);
    page.bytes.insert(page.bytes.end(), plain.begin(), plain.end());
  } else {
    page.bytes = Decompress(chunk_.codec, body, whole, where_);
  }
  ByteCursor cursor{page.bytes, where_};
  ReadLevels(header, cursor, page);
  size_t count = static_cast<size_t>(header.values);
  if (leaf_.definition > 0) {
    count = static_cast<size_t>(std::count(page.definition.begin(), page.definition.end(),
                                           static_cast<uint32_t>(leaf_.definition)));
  }
  if (header.encoding == Encoding::kPlain) {
    ReadPlain(cursor, leaf_, count, page.values);
  } else if (header.encoding == Encoding::kPlainDictionary ||
             header.encoding == Encoding::kRleDictionary) {
    const int width = count > 0 ? cursor.Take(1)[0] : 0;
    ReadFromDictionary(dictionary_, ReadRuns(cursor.bytes, width, count, where_), where_,
                       page.values);
  } else if (header.encoding == Encoding::kRle && leaf_.type == Type::kBool) {
    const auto bits = ReadRuns(cursor.Take(cursor.TakeUint32()), 1, count, where_);
    page.values.ints.assign(bits.begin(), bits.end());
  } else {
    throw Unsupported(where_ + ": its values are " + EncodingName(header.encoding) +
                      "; PLAIN and dictionaries are read");
  }
  return page;
}

}  // namespace mjp::parquet
