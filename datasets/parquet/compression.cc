#include "datasets/parquet/compression.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"

namespace mjp::parquet {
namespace {

// how much larger than its input a codec's output may be; what claims more is refused before it
// has memory
constexpr uint64_t kSnappyExpansion = 64;
constexpr uint64_t kGzipExpansion = 1032;

const char* Text(std::span<const uint8_t> bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}

bool Snappy(std::span<const uint8_t> bytes, std::vector<uint8_t>& out) {
  size_t size = 0;
  return snappy::GetUncompressedLength(Text(bytes), bytes.size(), &size) && size == out.size() &&
         snappy::RawUncompress(Text(bytes), bytes.size(), reinterpret_cast<char*>(out.data()));
}

bool Zstd(std::span<const uint8_t> bytes, std::vector<uint8_t>& out) {
  return ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size()) == out.size();
}

bool Gzip(std::span<const uint8_t> bytes, std::vector<uint8_t>& out) {
  z_stream stream{};
  constexpr int kZlibOrGzip = 15 + 32;
  if (inflateInit2(&stream, kZlibOrGzip) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

}  // namespace

std::vector<uint8_t> Decompress(Codec codec, std::span<const uint8_t> bytes, size_t size,
                                const std::string& where) {
  const Error damaged = BadInput(where + ": a page does not decompress to its " +
                                 std::to_string(size) + " bytes; the file is damaged");
  if (codec == Codec::kNone) {
    if (bytes.size() != size) throw damaged;
    return {bytes.begin(), bytes.end()};
  }
  const uint64_t most = codec == Codec::kSnappy ? kSnappyExpansion
                        : codec == Codec::kGzip ? kGzipExpansion
                                                : UINT64_MAX / (bytes.size() + 1);
  if (size > bytes.size() * most) throw damaged;
  std::vector<uint8_t> out(size);
  const bool whole = codec == Codec::kSnappy ? Snappy(bytes, out)
                     : codec == Codec::kGzip ? Gzip(bytes, out)
                                             : Zstd(bytes, out);
  if (!whole) throw damaged;
  return out;
}

std::vector<uint8_t> CompressSnappy(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> out(snappy::MaxCompressedLength(bytes.size()));
  size_t size = 0;
  snappy::RawCompress(Text(bytes), bytes.size(), reinterpret_cast<char*>(out.data()), &size);
  out.resize(size);
  return out;
}

}  // namespace mjp::parquet
