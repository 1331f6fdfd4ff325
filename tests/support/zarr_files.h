#ifndef TESTS_SUPPORT_ZARR_FILES_H_
#define TESTS_SUPPORT_ZARR_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {

// Three episodes of 4, 5 and 6 frames in Diffusion Policy's layout, without compression: state and
// action of 2 numbers, which count up from `first` by halves; with a shade, 0 ... 255, pictures,
// too, of 64 x 64 pixels of that value. In the folder `name` of `parent`.
inline void WriteZarr(const TempDir& parent, const std::string& name, float first = 0,
                      int shade = -1) {
  namespace fs = std::filesystem;
  using mjp::Json;
  const auto write = [&](const std::string& array, const std::string& type, const Json& shape,
                         const std::string& chunk, const auto& values) {
    const std::string folder = name + "/" + array;
    fs::create_directories(parent / folder);
    const Json description = {{"zarr_format", 2},   {"shape", shape}, {"chunks", shape},
                              {"dtype", type},      {"order", "C"},   {"compressor", nullptr},
                              {"filters", nullptr}, {"fill_value", 0}};
    parent.Write(folder + "/.zarray", description.dump());
    parent.Write(folder + "/" + chunk, std::string(reinterpret_cast<const char*>(values.data()),
                                                   values.size() * sizeof(values[0])));
  };
  fs::create_directories(parent / name);
  parent.Write(name + "/.zgroup", R"({"zarr_format": 2})");
  std::vector<float> numbers(30);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + 0.5f * static_cast<float>(i);
  for (const char* array : {"data/state", "data/action"})
    write(array, "<f4", {15, 2}, "0.0", numbers);
  if (shade >= 0) {
    const std::vector<uint8_t> pixels(size_t{15} * 64 * 64 * 3, static_cast<uint8_t>(shade));
    write("data/img", "|u1", {15, 64, 64, 3}, "0.0.0.0", pixels);
  }
  write("meta/episode_ends", "<i8", {3}, "0", std::vector<int64_t>{4, 9, 15});
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_ZARR_FILES_H_
