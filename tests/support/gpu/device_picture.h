#ifndef TESTS_SUPPORT_GPU_DEVICE_PICTURE_H_
#define TESTS_SUPPORT_GPU_DEVICE_PICTURE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp_test {

// A picture in memory of its own, which is black as soon as nobody holds it.
class DevicePicture : public mjp::GpuPicture {
 public:
  static std::shared_ptr<const mjp::GpuPicture> Make(const uint8_t* rgb, size_t bytes) {
    auto memory = mjp::MakeDeviceArray<uint8_t>(bytes);
    mjp::CheckCuda(cudaMemcpy(memory.get(), rgb, bytes, cudaMemcpyHostToDevice), "upload");
    mjp::CheckCuda(cudaStreamSynchronize(cudaStreamLegacy), "upload");
    return std::make_shared<DevicePicture>(std::move(memory), bytes);
  }
  DevicePicture(mjp::DeviceArray<uint8_t> memory, size_t bytes)
      : mjp::GpuPicture(memory.get(), bytes, 0), memory_(std::move(memory)) {}
  ~DevicePicture() override {
    static_cast<void>(cudaMemset(memory_.get(), 0, bytes()));
    static_cast<void>(cudaStreamSynchronize(cudaStreamLegacy));
  }
  void Download(std::span<uint8_t> rgb) const override {
    mjp::CheckCuda(cudaMemcpy(rgb.data(), data(), bytes(), cudaMemcpyDeviceToHost), "download");
  }

 private:
  mjp::DeviceArray<uint8_t> memory_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_DEVICE_PICTURE_H_
