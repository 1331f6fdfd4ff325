#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image_diffusion/data/pictures.h"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_MAX_DIMENSIONS 4096
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wconversion"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace mjp {
namespace {

static_assert(STBI_MAX_DIMENSIONS == kMaxEdge);
constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);

using PictureBytes = std::span<const uint8_t>;

std::string_view Text(PictureBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t BigEndian(PictureBytes at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}
uint32_t LittleEndian(PictureBytes at) {
  return uint32_t{at[3]} << 24 | uint32_t{at[2]} << 16 | uint32_t{at[1]} << 8 | at[0];
}

// Bytes of a PNG's rows before compression, by the content of its header (PNG specification, 8.2
// and 9.1); 0 for a header that the library refuses.
uint64_t PngRowBytes(PictureBytes header) {
  constexpr uint64_t kChannels[] = {1, 0, 3, 1, 2, 0, 4};
  struct Pass {
    uint32_t x, y, step_x, step_y;
  };
  constexpr Pass kWhole[] = {{0, 0, 1, 1}};
  constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                             {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  if (header.size() != 13 || header[9] >= std::size(kChannels) || header[12] > 1) return 0;
  const uint32_t width = BigEndian(header), height = BigEndian(header.subspan(4));
  if (width > kMaxEdge || height > kMaxEdge) return 0;
  const uint64_t bits = kChannels[header[9]] * header[8];
  uint64_t bytes = 0;
  for (const Pass& pass : header[12] == 0 ? std::span<const Pass>(kWhole) : kAdam7) {
    if (width <= pass.x || height <= pass.y) continue;
    const uint64_t columns = (width - pass.x - 1) / pass.step_x + 1;
    const uint64_t rows = (height - pass.y - 1) / pass.step_y + 1;
    bytes += rows * (1 + (columns * bits + 7) / 8);
  }
  return bytes;
}

// What is wrong with the compressed rows of a PNG, which must be `wanted` bytes. The library makes
// all of them, however many, takes as many as it needs, and does not look at their checksum.
std::string RowsFault(const std::vector<PictureBytes>& parts, uint64_t wanted) {
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) throw EnvironmentError("zlib cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::vector<uint8_t> rows(size_t{1} << 16);
  uint64_t count = 0;
  int status = Z_OK;
  for (const PictureBytes part : parts) {
    stream.next_in = const_cast<uint8_t*>(part.data());
    stream.avail_in = static_cast<unsigned>(part.size());
    for (bool more = !part.empty(); more && status == Z_OK;
         more = stream.avail_in > 0 || stream.avail_out == 0) {
      stream.next_out = rows.data();
      stream.avail_out = static_cast<unsigned>(rows.size());
      status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_BUF_ERROR) status = Z_OK;  // it had no more to give
      count += rows.size() - stream.avail_out;
      if (count > wanted) return "has more rows than its header says";
    }
    if (status == Z_STREAM_END && stream.avail_in > 0) return "has bytes behind its last row";
  }
  if (status != Z_STREAM_END) return "has rows that are damaged or not complete";
  return count < wanted ? "has fewer rows than its header says" : "";
}

// What is wrong with a PNG, none of which the library looks at: chunks that are not whole or do not
// have the checksum that they carry (PNG specification, 5.3); a first chunk that is not the header,
// as in files of Xcode, whose red is blue; rows that are not those of the header; pictures and
// bytes behind the first picture, which nobody would see. Empty: nothing.
std::string PngFault(PictureBytes bytes) {
  constexpr size_t kLength = 4, kType = 4, kChecksum = 4;
  uint64_t wanted = 0;
  std::vector<PictureBytes> rows;
  bool first = true;
  for (bytes = bytes.subspan(kPngSignature.size()); !bytes.empty(); first = false) {
    if (bytes.size() < kLength + kType + kChecksum) return "ends within a chunk";
    const uint32_t length = BigEndian(bytes);
    if (length > bytes.size() - kLength - kType - kChecksum) return "ends within a chunk";
    const PictureBytes chunk = bytes.subspan(kLength, kType + length);
    const std::string_view type = Text(chunk.first(kType));
    bytes = bytes.subspan(kLength + chunk.size());
    if (crc32(0, chunk.data(), static_cast<unsigned>(chunk.size())) != BigEndian(bytes)) {
      return "has a chunk with a wrong checksum";
    }
    bytes = bytes.subspan(kChecksum);
    if (first && type != "IHDR") return "does not begin with its header";
    if (first) wanted = PngRowBytes(chunk.subspan(kType));
    if (type == "acTL") return "is animated: all but its first picture would be lost";
    // the library copies it to nowhere
    if (type == "IDAT" && rows.empty() && length == 0) return "has an empty chunk before its rows";
    if (type == "IDAT") rows.push_back(chunk.subspan(kType));
    if (type != "IEND") continue;
    if (!bytes.empty()) return "goes on behind its end";
    return wanted > 0 ? RowsFault(rows, wanted) : "";
  }
  return "has no end";
}

// Where the rows of a BMP lie, by its header.
struct BmpRows {
  uint64_t bits;       // of a pixel
  uint64_t offset;     // of the first row, from the beginning of the file
  int64_t width;       // pixels
  uint64_t count;      // rows
  uint64_t row_bytes;  // a multiple of four
};
constexpr size_t kBmpFileHeader = 14, kBmpHeaders = kBmpFileHeader + 40;  // the shortest

// `bytes` are a BMP's, at least kBmpHeaders of them.
BmpRows BmpRowsOf(PictureBytes bytes) {
  constexpr uint64_t kRowBits = 32;
  const int64_t height = static_cast<int32_t>(LittleEndian(bytes.subspan(22)));
  BmpRows rows = {.bits = uint64_t{bytes[28]} | uint64_t{bytes[29]} << 8,
                  .offset = LittleEndian(bytes.subspan(10)),
                  .width = static_cast<int32_t>(LittleEndian(bytes.subspan(18))),
                  .count = static_cast<uint64_t>(height < 0 ? -height : height),
                  .row_bytes = 0};
  rows.row_bytes = (static_cast<uint64_t>(rows.width) * rows.bits + kRowBits - 1) / kRowBits * 4;
  return rows;
}

// What is wrong with a BMP: rows that are not there, which the library takes to be black.
std::string BmpFault(PictureBytes bytes) {
  if (bytes.size() < kBmpHeaders) return "ends within its header";
  const BmpRows rows = BmpRowsOf(bytes);
  if (LittleEndian(bytes.subspan(kBmpFileHeader)) < kBmpHeaders - kBmpFileHeader) {
    return "has a header of OS/2";
  }
  if (rows.width <= 0 || rows.count == 0) return "has no pixels";
  return bytes.size() < rows.offset + rows.row_bytes * rows.count ? "ends before its last row" : "";
}

std::string FaultOf(PictureBytes bytes) {
  if (Text(bytes).starts_with(kPngSignature)) return PngFault(bytes);
  if (Text(bytes).starts_with("BM")) return BmpFault(bytes);
  return "not a PNG or BMP picture";
}

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};
struct Pixels {
  std::unique_ptr<stbi_uc, FreePixels> values;  // (height, width, channels), null for none
  int width = 0, height = 0;
};

Pixels Decode(PictureBytes bytes, int channels) {
  Pixels pixels;
  int in_file = 0;
  pixels.values.reset(stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()),
                                            &pixels.width, &pixels.height, &in_file, channels));
  return pixels;
}

constexpr const char* kBeyondPalette = "has a colour that its palette has not";

// What is wrong with the palette of a PNG without other faults: pixels beyond it, to which the
// library gives colours of the picture that it read before. Empty: nothing, or no palette.
std::string PngPaletteFault(PictureBytes bytes) {
  constexpr size_t kDepth = 24, kColourType = 25, kGrey = 0, kPalette = 3;
  constexpr size_t kAround = 12;  // a chunk's content: length, type and checksum
  if (bytes[kColourType] != kPalette) return "";
  std::vector<uint8_t> grey(bytes.begin(), bytes.end());  // its levels are the indices
  grey[kColourType] = kGrey;
  uint32_t colours = 0;
  for (size_t at = kPngSignature.size(); at < bytes.size();) {
    const uint32_t length = BigEndian(bytes.subspan(at));
    const std::string_view type = Text(bytes.subspan(at + 4, 4));
    if (type == "PLTE") colours = length / 3;
    if (type == "tRNS") grey[at + 4] = 'n';  // unknown, as it has another form in a grey picture
    at += kAround + length;
  }
  const Pixels indices = Decode(grey, 1);
  if (indices.values == nullptr) return "has rows that are damaged";
  const uint8_t* begin = indices.values.get();
  const int largest = *std::max_element(begin, begin + int64_t{indices.width} * indices.height);
  const int step = 255 / ((1 << bytes[kDepth]) - 1);  // a grey picture's levels go up to 255
  return largest / step < static_cast<int>(colours) ? "" : kBeyondPalette;
}

// The same of a BMP, whose palette lies between header and rows and may use only its first colours.
std::string BmpPaletteFault(PictureBytes bytes) {
  const BmpRows rows = BmpRowsOf(bytes);
  if (rows.bits > 8) return "";  // of 1, 4 and 8 bits, the library reads no others
  const int bits = static_cast<int>(rows.bits);
  const int64_t headers = int64_t{kBmpFileHeader} + LittleEndian(bytes.subspan(kBmpFileHeader));
  const uint32_t used = LittleEndian(bytes.subspan(46));  // 0: all
  int64_t colours = (static_cast<int64_t>(rows.offset) - headers) / 4;
  if (used > 0) colours = std::min<int64_t>(colours, used);
  for (uint64_t y = 0; y < rows.count; ++y) {
    const PictureBytes row = bytes.subspan(rows.offset + y * rows.row_bytes);
    for (int64_t x = 0; x < rows.width; ++x) {
      const int64_t bit = x * bits;  // a byte's first pixel is in its highest bits
      const int index = row[bit / 8] >> (8 - bits - bit % 8) & ((1 << bits) - 1);
      if (index >= colours) return kBeyondPalette;
    }
  }
  return "";
}

}  // namespace

std::vector<uint8_t> ParsePicture(PictureBytes bytes, const std::string& origin, int size,
                                  int channels) {
  constexpr int kRgb = 3, kRgba = 4;
  const auto bad = [&](const std::string& what) {
    return BadInput(origin + ": " + what + "; remove or replace it");
  };
  if (const std::string fault = FaultOf(bytes); !fault.empty()) throw bad(fault);
  const Pixels pixels = Decode(bytes, kRgba);
  if (pixels.values == nullptr) {
    throw bad("not a PNG or BMP picture of at most 4096 pixels (" +
              std::string(stbi_failure_reason()) + ")");
  }
  const bool png = Text(bytes).starts_with(kPngSignature);
  const std::string fault = png ? PngPaletteFault(bytes) : BmpPaletteFault(bytes);
  if (!fault.empty()) throw bad(fault);
  const int64_t count = int64_t{pixels.width} * pixels.height;
  stbi_uc* to = pixels.values.get();
  const stbi_uc* end = to + count * kRgba;
  for (const stbi_uc* from = to; from < end; from += kRgba, to += kRgb) {
    if (from[kRgb] != 255) throw bad("has transparent pixels: what is behind them is not known");
    std::copy_n(from, kRgb, to);
  }
  return FitPicture(pixels.values.get(), pixels.height, pixels.width, kRgb, size, channels);
}

}  // namespace mjp
