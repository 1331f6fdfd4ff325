#include "datasets/pictures/png.h"

#include <png.h>

#include "base/error.h"

namespace mjp::datasets {
namespace {

constexpr uint64_t kMostPixels = 64 << 20;

// libpng's description of a picture, freed with it.
struct PngImage {
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  png_image image{};
};

}  // namespace

Picture DecodePng(std::span<const uint8_t> bytes, const std::string& where) {
  PngImage png;
  if (!png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size())) {
    throw BadInput(where + ": is not a PNG file: " + png.image.message);
  }
  if (uint64_t{png.image.width} * png.image.height > kMostPixels) {
    throw BadInput(where + ": has more pixels than are read here");
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
