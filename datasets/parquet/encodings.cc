#include "datasets/parquet/encodings.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace mjp::parquet {
namespace {

template <class T, class Out>
void ReadFixed(std::span<const uint8_t> bytes, std::vector<Out>& out) {
  out.reserve(out.size() + bytes.size() / sizeof(T));
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    out.push_back(static_cast<Out>(value));
  }
}

uint64_t TakeVarint(ByteCursor& cursor) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    const uint8_t byte = cursor.Take(1)[0];
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw BadInput(cursor.where + ": has a run of too many values; the file is damaged");
}

void WriteVarint(uint64_t value, std::vector<uint8_t>& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

// Numbers of `width` bits, lowest first, until `count` are there.
void Unpack(std::span<const uint8_t> bytes, int width, size_t count, std::vector<uint32_t>& out) {
  const uint64_t mask = (uint64_t{1} << width) - 1;
  uint64_t bits = 0;
  int have = 0;
  size_t at = 0;
  while (out.size() < count) {
    while (have < width) {
      if (at == bytes.size()) return;
      bits |= static_cast<uint64_t>(bytes[at++]) << have;
      have += 8;
    }
    out.push_back(static_cast<uint32_t>(bits & mask));
    bits >>= width;
    have -= width;
  }
}

}  // namespace

std::span<const uint8_t> ByteCursor::Take(uint64_t count) {
  if (count > bytes.size()) throw BadInput(where + ": a page ends too early; the file is damaged");
  const std::span<const uint8_t> taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return taken;
}

uint32_t ByteCursor::TakeUint32() {
  uint32_t value;
  std::memcpy(&value, Take(sizeof value).data(), sizeof value);
  return value;
}

int BitWidth(uint64_t most) { return std::bit_width(most); }

std::vector<uint32_t> ReadRuns(std::span<const uint8_t> bytes, int width, size_t count,
                               const std::string& where) {
  std::vector<uint32_t> out;
  if (width > 32) throw BadInput(where + ": has numbers of more than 32 bits");
  ByteCursor cursor{bytes, where};
  while (out.size() < count) {
    const uint64_t header = TakeVarint(cursor);
    if (header & 1) {  // groups of eight packed numbers; a writer may leave out the last's end
      const uint64_t wanted = (header >> 1) * static_cast<uint64_t>(width);
      if (header >> 1 == 0) continue;
      const size_t before = out.size();
      const auto packed = cursor.Take(std::min<uint64_t>(wanted, cursor.bytes.size()));
      const size_t most = std::min<uint64_t>(count - before, (header >> 1) * 8);
      if (width == 0) {
        out.resize(before + most, 0);
      } else {
        Unpack(packed, width, before + most, out);
      }
      if (out.size() < before + most) {
        throw BadInput(where + ": a page ends too early; the file is damaged");
      }
    } else {
      uint32_t value = 0;
      const auto taken = cursor.Take(static_cast<uint64_t>((width + 7) / 8));
      std::copy(taken.begin(), taken.end(), reinterpret_cast<uint8_t*>(&value));
      out.resize(out.size() + std::min<uint64_t>(header >> 1, count - out.size()), value);
    }
  }
  return out;
}

void ReadPlain(ByteCursor& cursor, const Leaf& leaf, size_t count, Values& out) {
  switch (leaf.type) {
    case Type::kBool: {
      const auto bytes = cursor.Take((uint64_t{count} + 7) / 8);
      for (size_t i = 0; i < count; ++i) out.ints.push_back(bytes[i / 8] >> (i % 8) & 1);
      break;
    }
    case Type::kInt32: {
      const auto bytes = cursor.Take(uint64_t{count} * 4);
      leaf.is_unsigned ? ReadFixed<uint32_t>(bytes, out.ints) : ReadFixed<int32_t>(bytes, out.ints);
      break;
    }
    case Type::kInt64:
      ReadFixed<int64_t>(cursor.Take(uint64_t{count} * 8), out.ints);
      if (leaf.is_unsigned &&
          std::ranges::any_of(out.ints, [](int64_t value) { return value < 0; }))
        throw Unsupported(cursor.where + ": has a number beyond 2^63 - 1, which is not read here");
      break;
    case Type::kFloat:
      ReadFixed<float>(cursor.Take(uint64_t{count} * 4), out.numbers);
      break;
    case Type::kDouble:
      ReadFixed<double>(cursor.Take(uint64_t{count} * 8), out.numbers);
      break;
    case Type::kBytes:
      for (size_t i = 0; i < count; ++i) {
        const auto text = cursor.Take(cursor.TakeUint32());
        out.texts.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
      }
      break;
    default:
      throw Unsupported(cursor.where + ": INT96 and fixed byte arrays are not read here");
  }
}

void ReadFromDictionary(const Values& dictionary, const std::vector<uint32_t>& indices,
                        const std::string& where, Values& out) {
  const auto take = [&](const auto& from, auto& to) {
    to.reserve(to.size() + indices.size());
    for (const uint32_t index : indices) {
      if (index >= from.size()) {
        throw BadInput(where + ": refers to value " + std::to_string(index) +
                       " of a dictionary of " + std::to_string(from.size()));
      }
      to.push_back(from[index]);
    }
  };
  if (!dictionary.ints.empty()) {
    take(dictionary.ints, out.ints);
  } else if (!dictionary.numbers.empty()) {
    take(dictionary.numbers, out.numbers);
  } else {
    take(dictionary.texts, out.texts);
  }
}

void WriteRun(uint32_t level, size_t count, int width, std::vector<uint8_t>& out) {
  if (count == 0) return;
  WriteVarint(uint64_t{count} << 1, out);
  for (int byte = 0; byte < (width + 7) / 8; ++byte) {
    out.push_back(static_cast<uint8_t>(level >> (8 * byte)));
  }
}

void WritePacked(std::span<const uint8_t> levels, int width, std::vector<uint8_t>& out) {
  const size_t groups = (levels.size() + 7) / 8;
  if (groups == 0) return;
  WriteVarint(uint64_t{groups} << 1 | 1, out);
  uint32_t bits = 0;
  int have = 0;
  for (size_t i = 0; i < groups * 8; ++i) {
    bits |= static_cast<uint32_t>(i < levels.size() ? levels[i] : 0) << have;
    for (have += width; have >= 8; have -= 8, bits >>= 8) {
      out.push_back(static_cast<uint8_t>(bits));
    }
  }
}

}  // namespace mjp::parquet
