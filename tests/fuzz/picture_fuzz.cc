#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace {

// Gives every chunk of a PNG its right checksum, so that what is behind that check is reached.
void MendChecksums(std::vector<uint8_t>& bytes) {
  constexpr size_t kSignature = 8, kLength = 4, kAround = 12;
  if (bytes.size() < kSignature || bytes[1] != 'P') return;
  for (size_t at = kSignature; bytes.size() - at >= kAround;) {
    const uint8_t* from = bytes.data() + at;
    const size_t length =
        size_t{from[0]} << 24 | size_t{from[1]} << 16 | size_t{from[2]} << 8 | from[3];
    if (length > bytes.size() - at - kAround) return;
    const unsigned long sum = crc32(0, from + kLength, static_cast<unsigned>(length + kLength));
    at += kAround + length;
    for (int i = 0; i < 4; ++i) bytes[at - 4 + i] = sum >> (24 - 8 * i) & 0xFF;
  }
}

}  // namespace

// Any bytes are a picture of the asked size, or refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  MendChecksums(bytes);
  try {
    if (mjp::ParsePicture(bytes, "fuzz", 4, 3).size() != 4 * 4 * 3) std::terminate();
  } catch (const mjp::Error&) {
  }
  return 0;
}
