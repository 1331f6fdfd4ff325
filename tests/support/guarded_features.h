#ifndef TESTS_SUPPORT_GUARDED_FEATURES_H_
#define TESTS_SUPPORT_GUARDED_FEATURES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/features.h"

namespace mjp_test {

// Uniform numbers in [-1, 1), the same for a seed.
inline std::vector<float> RandomFloats(size_t size, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(size);
  for (float& v : values) v = static_cast<float>(generator() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

// Feature maps between guard bands, their elements NaN until written: a kernel that reads what it
// should not, or writes outside, is found.
class GuardedFeatures {
 public:
  // Channels [first, first + shape.channels) of maps of shape.pitch channels.
  explicit GuardedFeatures(const mjp::cpu::Features& shape, int first = 0) : view(shape) {
    if (view.pitch == 0) view.pitch = view.channels;
    memory_.assign(kGuard * 2 + static_cast<size_t>(view.batch * view.BatchStride()), kMark);
    first_ = memory_.data() + kGuard;
    view.data = first_ + view.halo_y * view.RowStride() + int64_t{view.halo_x} * view.pitch + first;
    for (int64_t i = 0; i < view.batch * view.BatchStride(); ++i) first_[i] = 0;
    ForEach([](float& v, int, int, int, int) { v = NAN; });
  }

  // Calls f(element, n, h, w, c) for every element of the maps.
  template <class F>
  void ForEach(F&& f) {
    for (int n = 0; n < view.batch; ++n) {
      for (int h = 0; h < view.height; ++h) {
        for (int w = 0; w < view.width; ++w) {
          for (int c = 0; c < view.channels; ++c) f(view.At(n, h, w)[c], n, h, w, c);
        }
      }
    }
  }

  // From and to (batch, channels, height, width).
  void Set(const std::vector<float>& values) {
    ForEach([&](float& v, int n, int h, int w, int c) { v = values[Index(n, h, w, c)]; });
  }
  std::vector<float> Get() {
    std::vector<float> values(size_t{1} * view.batch * view.channels * view.height * view.width);
    ForEach([&](float& v, int n, int h, int w, int c) { values[Index(n, h, w, c)] = v; });
    return values;
  }

  // Guards, halo and neighbouring channels are as they were.
  testing::AssertionResult Intact() {
    const std::vector<float> values = Get();
    ForEach([](float& v, int, int, int, int) { v = 0; });
    testing::AssertionResult result = testing::AssertionSuccess();
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool guard = i < kGuard || i >= memory_.size() - kGuard;
      if (memory_[i] == (guard ? kMark : 0.0f)) continue;
      result = testing::AssertionFailure()
               << "element " << i << " of " << memory_.size() << " was written: " << memory_[i];
      break;
    }
    Set(values);
    return result;
  }

  mjp::cpu::Features view;

 private:
  static constexpr size_t kGuard = 256;
  static constexpr float kMark = 12345.0f;

  size_t Index(int n, int h, int w, int c) const {
    return ((size_t{1} * n * view.channels + c) * view.height + h) * view.width + w;
  }

  std::vector<float> memory_;
  float* first_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GUARDED_FEATURES_H_
