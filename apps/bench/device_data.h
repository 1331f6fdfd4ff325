#ifndef APPS_BENCH_DEVICE_DATA_H_
#define APPS_BENCH_DEVICE_DATA_H_

#include <algorithm>
#include <vector>

#include "kernels/shared/stored_element.h"
#include "policy/cuda/arena.h"

namespace mjp::app {

// Arrays on the device for one kernel's arguments, filled with numbers in [-1, 1) that repeat.
class DeviceData {
 public:
  DeviceData(mjp::DeviceArena& arena, mjp::Format format) : arena_(arena), format_(format) {}

  mjp::Format format() const { return format_; }
  // `count` numbers in the format's storage type, or in float32.
  void* Stored(size_t count) { return Fill(format_, count); }
  float* Floats(size_t count) { return static_cast<float*>(Fill(mjp::Format::kFp32, count)); }
  // Zeros.
  template <typename T>
  T* Zeros(size_t count) {
    return arena_.Take<T>(count);
  }
  template <typename T>
  T* Copy(const std::vector<T>& values) {
    T* device = arena_.Take<T>(values.size());
    arena_.Upload(device, values.data(), values.size() * sizeof(T));
    return device;
  }

 private:
  void* Fill(mjp::Format format, size_t count) {
    constexpr size_t kPattern = 1 << 18;
    const size_t bytes = mjp::FormatBytes(format);
    auto* device = static_cast<uint8_t*>(arena_.TakeBytes(count * bytes));
    if (arena_.measuring()) return device;
    std::vector<uint8_t> pattern(std::min(count, kPattern) * bytes);
    for (size_t i = 0; i < pattern.size() / bytes; ++i)
      mjp::StoreElement(format, static_cast<float>(i * 7919 % 2048) / 1024 - 1,
                        &pattern[i * bytes]);
    for (size_t at = 0; at < count * bytes; at += pattern.size())
      arena_.Upload(device + at, pattern.data(), std::min(pattern.size(), count * bytes - at));
    return device;
  }

  mjp::DeviceArena& arena_;
  mjp::Format format_;
};

}  // namespace mjp::app

#endif  // APPS_BENCH_DEVICE_DATA_H_
