#include "tasks/recording/png.h"

#include "base/file.h"
#include "tasks/recording/free_name.h"
#include "tasks/recording/stb_writer.h"

namespace mjp::app {
namespace {

std::vector<uint8_t> Encode(const Picture& picture) {
  std::vector<uint8_t> png;
  const auto append = [](void* context, void* data, int size) {
    auto* bytes = static_cast<std::vector<uint8_t>*>(context);
    bytes->insert(bytes->end(), static_cast<uint8_t*>(data), static_cast<uint8_t*>(data) + size);
  };
  stbi_write_png_to_func(append, &png, picture.width, picture.height, 3, picture.rgb.data(), 0);
  return png;
}

}  // namespace

void WritePng(const std::string& path, const Picture& picture) {
  mjp::WriteFileAtomically(path, Encode(picture));
}

std::string WritePngToFreeName(const std::string& stem, const Picture& picture) {
  return WriteToFreeName(stem, ".png", Encode(picture));
}

}  // namespace mjp::app
