#include "apps/train/event_file.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace mjp::app {
namespace {

// CRC-32C (Castagnoli), reflected.
uint32_t Crc32c(const std::string& bytes) {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
  }
  return ~crc;
}

// As tfrecord masks it.
uint32_t Masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

template <class T>
std::string Bytes(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields of a protocol buffer: their numbers with the wire types 0, 1, 2 and 5.
std::string Key(int field, int type) { return Varint(static_cast<uint64_t>(field << 3 | type)); }
std::string Integer(int field, uint64_t value) { return Key(field, 0) + Varint(value); }
std::string Double(int field, double value) { return Key(field, 1) + Bytes(value); }
std::string Text(int field, const std::string& text) {
  return Key(field, 2) + Varint(text.size()) + text;
}
std::string Float(int field, float value) { return Key(field, 5) + Bytes(value); }

}  // namespace

EventFile::EventFile(const std::string& folder, double now) {
  path_ = folder + "/events.out.tfevents." + std::to_string(std::llround(now)) + "." +
          std::to_string(::getpid()) + ".mjpolicy";
  std::filesystem::create_directories(folder);
  file_.open(path_, std::ios::binary | std::ios::trunc);
  Write(Double(1, now) + Text(3, "brain.Event:2"));
}

void EventFile::Add(const std::string& tag, int64_t step, double value, double now) {
  const std::string scalar = Text(1, tag) + Float(2, static_cast<float>(value));
  Write(Double(1, now) + Integer(2, static_cast<uint64_t>(step)) + Text(5, Text(1, scalar)));
}

void EventFile::Write(const std::string& event) {
  const std::string length = Bytes(static_cast<uint64_t>(event.size()));
  file_ << length << Bytes(Masked(Crc32c(length))) << event << Bytes(Masked(Crc32c(event)));
  if (!file_.flush())
    throw BadInput(path_ +
                   ": cannot be written; make room on its disk and start the same command again");
}

}  // namespace mjp::app
