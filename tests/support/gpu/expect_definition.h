#ifndef TESTS_SUPPORT_GPU_EXPECT_DEFINITION_H_
#define TESTS_SUPPORT_GPU_EXPECT_DEFINITION_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/shared/format.h"

namespace mjp_test {

// Asserts that the values of a 16-bit product, whose operands it stored exactly, are finite, and
// that some thousands of them agree with `expected`(index) within the format's rounding.
inline void ExpectDefinition(mjp::Format format, const std::vector<float>& y,
                             const std::function<double(size_t)>& expected) {
  constexpr size_t kSamples = 8209;
  const double rounding = format == mjp::Format::kFp16 ? 1.2e-3 : 9e-3;
  const size_t stride = std::max<size_t>(1, y.size() / kSamples);
  for (size_t index = 0; index < y.size(); ++index) {
    ASSERT_TRUE(std::isfinite(y[index])) << "element " << index;
    if (index % stride != 0) continue;
    const double value = expected(index);
    ASSERT_NEAR(y[index], value, rounding * (1 + std::abs(value))) << "element " << index;
  }
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GPU_EXPECT_DEFINITION_H_
