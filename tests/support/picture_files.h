#ifndef TESTS_SUPPORT_PICTURE_FILES_H_
#define TESTS_SUPPORT_PICTURE_FILES_H_

#include <zlib.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

// Files of picture data sets, made byte by byte as the formats' own descriptions say.

namespace mjp_test {

using Bytes = std::vector<uint8_t>;

inline void WriteBytes(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
}

inline Bytes ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void PutBigEndian(Bytes& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(value >> shift & 0xFF);
}
inline void SetBigEndian(Bytes& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = value >> (24 - 8 * i) & 0xFF;
}
inline void SetLittleEndian(Bytes& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = value >> (8 * i) & 0xFF;
}

// An IDX file of unsigned bytes.
inline Bytes Idx(const std::vector<uint32_t>& shape, const Bytes& data) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(shape.size())};
  for (const uint32_t extent : shape) PutBigEndian(bytes, extent);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

// window_bits: 16 + MAX_WBITS for gzip, MAX_WBITS for zlib's own format, as in a PNG.
inline Bytes Deflate(const Bytes& bytes, int window_bits) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<unsigned>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<unsigned>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline Bytes Gzip(const Bytes& bytes) { return Deflate(bytes, 16 + MAX_WBITS); }

// A chunk of a PNG with its right checksum.
inline Bytes PngChunk(std::string_view type, const Bytes& data) {
  Bytes chunk;
  PutBigEndian(chunk, static_cast<uint32_t>(data.size()));
  chunk.insert(chunk.end(), type.begin(), type.end());
  chunk.insert(chunk.end(), data.begin(), data.end());
  PutBigEndian(chunk, static_cast<uint32_t>(crc32(0, chunk.data() + 4, chunk.size() - 4)));
  return chunk;
}

inline Bytes Joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline const Bytes kPngSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

// The contents of IHDR: 8 bits a channel, not interlaced.
inline Bytes PngHeader(uint32_t width, uint32_t height, uint8_t color_type, uint8_t depth = 8) {
  Bytes header;
  PutBigEndian(header, width);
  PutBigEndian(header, height);
  header.insert(header.end(), {depth, color_type, 0, 0, 0});
  return header;
}

// A PNG of one colour, whose channels (1: grey, 3: RGB, 4: RGBA) are those of `pixel`.
inline Bytes Png(uint32_t width, uint32_t height, const Bytes& pixel) {
  const uint8_t type = pixel.size() == 1 ? 0 : pixel.size() == 3 ? 2 : 6;
  Bytes rows;
  for (uint32_t y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    for (uint32_t x = 0; x < width; ++x) rows.insert(rows.end(), pixel.begin(), pixel.end());
  }
  return Joined({kPngSignature, PngChunk("IHDR", PngHeader(width, height, type)),
                 PngChunk("IDAT", Deflate(rows, MAX_WBITS)), PngChunk("IEND", {})});
}

// A BMP of one colour, 24 bits: header, then rows of blue, green, red, padded to four bytes.
inline Bytes Bmp(int width, int height, const Bytes& bgr) {
  const int row = (width * 3 + 3) / 4 * 4, size = 54 + row * height;
  Bytes bytes(size);
  bytes[0] = 'B', bytes[1] = 'M';
  SetLittleEndian(bytes, 2, size);
  SetLittleEndian(bytes, 10, 54);
  SetLittleEndian(bytes, 14, 40);
  SetLittleEndian(bytes, 18, width);
  SetLittleEndian(bytes, 22, height);
  bytes[26] = 1, bytes[28] = 24;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) bytes[54 + y * row + x * 3 + c] = bgr[c];
  return bytes;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_PICTURE_FILES_H_
