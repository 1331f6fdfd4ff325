#ifndef DATASETS_PICTURES_PICTURE_H_
#define DATASETS_PICTURES_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mjp::datasets {

// A picture of 8 bits a channel, red, green, blue, rows from the top: (height, width, 3).
struct Picture {
  int height = 0, width = 0;
  std::vector<uint8_t> rgb;

  size_t Bytes() const {
    return static_cast<size_t>(height) * static_cast<size_t>(width) * size_t{3};
  }
};

}  // namespace mjp::datasets

#endif  // DATASETS_PICTURES_PICTURE_H_
