#include "datasets/pictures/png.h"

#include <png.h>

#include <algorithm>

#include "base/error.h"

namespace mjp::datasets {
namespace {

constexpr uint64_t kMostPixels = 64 << 20;
constexpr size_t kSignature = 8, kBitDepth = 24;  // bytes at a file's start, where it has its depth
constexpr uint64_t kHeader = 8, kChecksum = 4;    // bytes of a chunk

// libpng's description of a picture, freed with it.
struct PngImage {
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  png_image image{};
};

// The chunks of a file that a decoder needs. Of the others libpng takes how the colours are meant
// (gAMA), and would give other values than the file has; Pillow, and so LeRobot, gives those.
std::vector<uint8_t> Needed(std::span<const uint8_t> file) {
  const auto signature = file.first(std::min(kSignature, file.size()));
  std::vector<uint8_t> needed(signature.begin(), signature.end());
  for (auto rest = file.subspan(signature.size()); !rest.empty();) {
    uint64_t size = rest.size();  // of a chunk; of what is cut off, for libpng to tell
    bool wanted = true;
    if (size >= kHeader) {
      const auto length = uint32_t{rest[0]} << 24 | uint32_t{rest[1]} << 16 |
                          uint32_t{rest[2]} << 8 | uint32_t{rest[3]};
      size = std::min(size, kHeader + length + kChecksum);
      wanted = (rest[4] & 0x20) == 0;  // its name begins with a capital
    }
    if (wanted) needed.insert(needed.end(), rest.data(), rest.data() + size);
    rest = rest.subspan(size);
  }
  return needed;
}

}  // namespace

Picture DecodePng(std::span<const uint8_t> file, const std::string& where) {
  const std::vector<uint8_t> bytes = Needed(file);
  PngImage png;
  if (!png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size())) {
    throw BadInput(where + ": is not a PNG file: " + png.image.message);
  }
  if (uint64_t{png.image.width} * png.image.height > kMostPixels) {
    throw BadInput(where + ": has more pixels than are read here");
  }
  if (bytes[kBitDepth] > 8) {
    throw Unsupported(where + ": has " + std::to_string(bytes[kBitDepth]) +
                      " bits a channel; write it with 8");
  }
  png.image.format = PNG_FORMAT_RGB;
  Picture picture{static_cast<int>(png.image.height), static_cast<int>(png.image.width), {}};
  picture.rgb.resize(picture.Bytes());
  const png_color black{};
  // libpng's warnings are of damage, too
  if (!png_image_finish_read(&png.image, &black, picture.rgb.data(), 0, nullptr)) {
    throw BadInput(where + ": is a damaged PNG file: " + png.image.message);
  }
  return picture;
}

std::vector<uint8_t> EncodePng(const Picture& picture) {
  PngImage png;
  png.image.width = static_cast<png_uint_32>(picture.width);
  png.image.height = static_cast<png_uint_32>(picture.height);
  png.image.format = PNG_FORMAT_RGB;
  png.image.flags = PNG_IMAGE_FLAG_FAST;
  std::vector<uint8_t> bytes(PNG_IMAGE_PNG_SIZE_MAX(png.image));
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&png.image, bytes.data(), &size, 0, picture.rgb.data(), 0,
                                 nullptr)) {
    throw BadInput("a picture cannot be made a PNG file: " + std::string(png.image.message));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace mjp::datasets
