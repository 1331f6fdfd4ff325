#ifndef TESTS_SUPPORT_GPU_HOST_PICTURE_H_
#define TESTS_SUPPORT_GPU_HOST_PICTURE_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "policy/pictures/gpu_picture.h"

namespace mjp_test {

// Stands for a picture in a GPU's memory where there is no GPU. Counts how often one is read.
class HostPicture : public mjp::GpuPicture {
 public:
  static inline int downloads = 0;

  explicit HostPicture(std::vector<uint8_t> rgb, int device = 0)
      : GpuPicture(rgb.data(), rgb.size(), device), rgb_(std::move(rgb)) {}
  void Download(std::span<uint8_t> rgb) const override {
    ++downloads;
    std::ranges::copy(rgb_, rgb.begin());
  }

 private:
  std::vector<uint8_t> rgb_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_HOST_PICTURE_H_
