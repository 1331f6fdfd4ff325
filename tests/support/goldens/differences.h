#ifndef TESTS_SUPPORT_GOLDENS_DIFFERENCES_H_
#define TESTS_SUPPORT_GOLDENS_DIFFERENCES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

// What the golden tests of all networks need: largest differences, and batches of one input.

namespace mjp_test {

// The largest difference between a and b, which must have one size; NaN where one is NaN.
// `per_unit`: each divided by 1 + |b|.
inline double LargestDifference(const std::vector<float>& a, const std::vector<float>& b,
                                bool per_unit = false) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double expected = b[i];
    const double d = std::abs(a[i] - expected) / (per_unit ? 1 + std::abs(expected) : 1);
    if (!(d <= worst)) worst = d;  // NaN sticks
    if (std::isnan(d)) return d;
  }
  return worst;
}

// `copies` times `one`, one behind the other.
template <typename T>
std::vector<T> Repeated(const std::vector<T>& one, int copies) {
  std::vector<T> all;
  for (int n = 0; n < copies; ++n) all.insert(all.end(), one.begin(), one.end());
  return all;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_DIFFERENCES_H_
