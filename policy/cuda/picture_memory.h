#ifndef POLICY_CUDA_PICTURE_MEMORY_H_
#define POLICY_CUDA_PICTURE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "policy/pictures/gpu_picture.h"

namespace mjp {

// Memory of the current GPU for pictures of one size. What a picture leaves is the next one's,
// since to give memory back would wait for all that the GPU is doing. It lives as long as its
// pictures. Thread-safe.
class PictureMemory {
 public:
  // `device` is the current one, as CUDA calls it.
  PictureMemory(size_t bytes, int device);

  // Makes a picture, which `fill` draws to the end: it is given `bytes` of the GPU's memory. Throws
  // Error, OutOfDeviceMemory too, and what `fill` throws.
  std::shared_ptr<GpuPicture> Make(const std::function<void(uint8_t* rgb)>& fill);

 private:
  class Blocks;
  class Picture;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_PICTURE_MEMORY_H_
