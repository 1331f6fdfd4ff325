#ifndef POLICY_PICTURES_GPU_PICTURE_H_
#define POLICY_PICTURES_GPU_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mjp {

// What the cameras saw at one observation, in the memory of a GPU: (cameras, height, width, 3) RGB,
// 8 bits, row 0 at the top. Whole when it is handed out, and never written again. Whoever reads it
// keeps a handle until that is done; afterwards the memory is another picture's.
class GpuPicture {
 public:
  GpuPicture(const uint8_t* data, size_t bytes, int device)
      : data_(data), bytes_(bytes), device_(device) {}
  virtual ~GpuPicture() = default;
  GpuPicture(const GpuPicture&) = delete;
  GpuPicture& operator=(const GpuPicture&) = delete;

  const uint8_t* data() const { return data_; }  // of the device
  size_t bytes() const { return bytes_; }
  int device() const { return device_; }  // what CUDA calls it

  // Copies it to the host. Throws Error.
  virtual void Download(std::span<uint8_t> rgb) const = 0;

  // All that it depends on: pictures of which this is the same are the same, so that nobody has to
  // read them. Empty: that is not known.
  std::string shows;

 private:
  const uint8_t* data_;
  size_t bytes_;
  int device_;
};

// Whether both are known to be the same picture.
inline bool SamePicture(const GpuPicture& a, const GpuPicture& b) {
  return &a == &b || (!a.shows.empty() && a.shows == b.shows);
}

}  // namespace mjp

#endif  // POLICY_PICTURES_GPU_PICTURE_H_
