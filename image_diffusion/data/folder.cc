#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
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

namespace fs = std::filesystem;
constexpr uint64_t kFileLimit = uint64_t{64} << 20;

std::vector<fs::path> Sorted(const fs::path& folder, bool folders) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (folders ? entry.is_directory() : entry.is_regular_file()) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<uint8_t> ParsePicture(std::span<const uint8_t> bytes, const std::string& origin,
                                  int size, int channels) {
  constexpr int kRgb = 3;
  int width = 0, height = 0, in_file = 0;
  stbi_uc* pixels = stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width,
                                          &height, &in_file, kRgb);
  if (pixels == nullptr) {
    throw BadInput(origin + ": not a PNG or BMP picture of at most 4096 pixels (" +
                   stbi_failure_reason() + "); remove or replace it");
  }
  std::vector<uint8_t> out = FitPicture(pixels, height, width, kRgb, size, channels);
  stbi_image_free(pixels);
  return out;
}

PictureSet LoadFolder(const PictureOptions& options) {
  constexpr size_t kMaxClasses = 256;
  PictureSet set{.size = options.size, .channels = options.channels};
  const std::string layout = "; a folder of pictures is laid out as DIR/<class>/<picture>.png";
  if (!fs::is_directory(options.directory)) {
    throw BadInput((options.directory.empty() ? "--data" : options.directory) +
                   ": is not a folder" + layout);
  }
  for (const fs::path& folder : Sorted(options.directory, true)) {
    if (set.classes.size() == kMaxClasses) {
      throw BadInput(options.directory + ": has more than 256 sub-folders" + layout);
    }
    for (const fs::path& file : Sorted(folder, false)) {
      const std::vector<uint8_t> bytes = ReadFile(file.string(), kFileLimit);
      const std::vector<uint8_t> pixels =
          ParsePicture(bytes, file.string(), set.size, set.channels);
      set.pixels.insert(set.pixels.end(), pixels.begin(), pixels.end());
      set.labels.push_back(static_cast<uint8_t>(set.classes.size()));
    }
    set.classes.push_back(folder.filename().string());
  }
  if (set.labels.empty()) throw BadInput(options.directory + ": holds no pictures" + layout);
  return set;
}

}  // namespace mjp
