#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"

namespace mjp {

std::vector<uint8_t> Inflate(std::span<const uint8_t> bytes, const std::string& origin,
                             size_t limit) {
  if (bytes.size() < 2 || bytes[0] != 0x1F || bytes[1] != 0x8B) {
    return {bytes.begin(), bytes.end()};
  }
  constexpr int kGzip = 16 + MAX_WBITS;
  constexpr size_t kChunk = size_t{1} << 20;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzip) != Z_OK) throw EnvironmentError("zlib cannot start");
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<unsigned>(bytes.size());
  std::vector<uint8_t> out;
  int status = Z_OK;
  while (status == Z_OK && out.size() <= limit) {
    const size_t done = out.size();
    out.resize(std::min(done + kChunk, limit + 1));
    stream.next_out = out.data() + done;
    stream.avail_out = static_cast<unsigned>(out.size() - done);
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t made = out.size() - done - stream.avail_out;
    out.resize(done + made);
    if (made == 0 && status == Z_OK) break;
  }
  const bool rest = stream.avail_in > 0;
  inflateEnd(&stream);
  if (out.size() > limit) {
    throw BadInput(origin + ": holds more than " + std::to_string(limit) +
                   " bytes: not a file of this data set");
  }
  if (status != Z_STREAM_END || rest) {
    throw BadInput(origin + ": the gzip data is damaged or not complete; download it again");
  }
  return out;
}

}  // namespace mjp
