#ifndef TESTS_SUPPORT_DEVICE_BUFFER_H_
#define TESTS_SUPPORT_DEVICE_BUFFER_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/shared/format.h"

namespace mjp_test {

inline bool HaveDevice() {
  int count = 0;
  const bool have = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return have;
}

// Device memory between two guard bands, poisoned, so that a write outside and an element that
// nobody wrote are found.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) : bytes_(bytes) {
    mjp::CheckCuda(cudaMalloc(reinterpret_cast<void**>(&base_), bytes + 2 * kGuard), "cudaMalloc");
    mjp::CheckCuda(cudaMemset(base_, kPoison, bytes + 2 * kGuard), "cudaMemset");
  }
  // With these values.
  template <typename T>
  explicit DeviceBuffer(const std::vector<T>& host) : DeviceBuffer(host.size() * sizeof(T)) {
    Upload(host.data());
  }
  ~DeviceBuffer() { static_cast<void>(cudaFree(base_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return base_ + kGuard; }
  size_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(base_ + kGuard);
  }
  void Upload(const void* host) const {
    mjp::CheckCuda(cudaMemcpy(data(), host, bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  // The contents; fails the test if a guard band was touched.
  std::vector<uint8_t> Download() const {
    std::vector<uint8_t> all(bytes_ + 2 * kGuard);
    mjp::CheckCuda(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto poisoned = [](uint8_t b) { return b == kPoison; };
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + kGuard, poisoned)) << "write before";
    EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), poisoned)) << "write behind";
    return {all.begin() + kGuard, all.end() - kGuard};
  }

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr uint8_t kPoison = 0xff;  // NaN in every format
  uint8_t* base_ = nullptr;
  size_t bytes_;
};

// For the names of tests.
inline const char* FormatName(mjp::Format format) {
  constexpr const char* kNames[] = {"Fp32", "Tf32", "Fp16", "Bf16"};
  return kNames[static_cast<int>(format)];
}

// Float32 values as the format stores them.
inline std::vector<uint8_t> Stored(mjp::Format format, const std::vector<float>& values) {
  std::vector<uint8_t> out(values.size() * mjp::FormatBytes(format));
  for (size_t i = 0; i < values.size(); ++i) {
    if (format == mjp::Format::kFp16) {
      const __half h = __float2half_rn(values[i]);
      std::memcpy(&out[2 * i], &h, 2);
    } else if (format == mjp::Format::kBf16) {
      const __nv_bfloat16 h = __float2bfloat16_rn(values[i]);
      std::memcpy(&out[2 * i], &h, 2);
    } else {
      std::memcpy(&out[4 * i], &values[i], 4);
    }
  }
  return out;
}
inline std::vector<float> Floats(mjp::Format format, const std::vector<uint8_t>& stored) {
  std::vector<float> out(stored.size() / mjp::FormatBytes(format));
  for (size_t i = 0; i < out.size(); ++i) {
    if (format == mjp::Format::kFp16) {
      __half h;
      std::memcpy(&h, &stored[2 * i], 2);
      out[i] = __half2float(h);
    } else if (format == mjp::Format::kBf16) {
      __nv_bfloat16 h;
      std::memcpy(&h, &stored[2 * i], 2);
      out[i] = __bfloat162float(h);
    } else {
      std::memcpy(&out[i], &stored[4 * i], 4);
    }
  }
  return out;
}

// How close a normalisation comes to its definition, relative: docs/NUMERICS.md.
inline double NormTolerance(mjp::Format format) {
  if (mjp::FormatBytes(format) == 4) return 5e-6;
  return format == mjp::Format::kFp16 ? 1e-3 : 8e-3;
}

// What an operand becomes on its way into a product: rounded through the format.
inline float Operand(mjp::Format format, float x) {
  if (format != mjp::Format::kTf32) return Floats(format, Stored(format, {x}))[0];
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&x, &bits, 4);
  return x;
}

// Normal values as operands of a format: the same ones from each seed.
class OperandSource {
 public:
  OperandSource(mjp::Format format, unsigned seed) : format_(format), random_(seed) {}

  std::vector<float> Draw(size_t count, float mean = 0.0f, float scale = 1.0f) {
    std::vector<float> values(count);
    for (float& v : values) v = Operand(format_, mean + scale * normal_(random_));
    return values;
  }

 private:
  mjp::Format format_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

}  // namespace mjp_test

#define DEVICE_OR_SKIP() \
  if (!mjp_test::HaveDevice()) GTEST_SKIP() << "no CUDA device"

#endif  // TESTS_SUPPORT_DEVICE_BUFFER_H_
