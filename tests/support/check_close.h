#ifndef TESTS_SUPPORT_CHECK_CLOSE_H_
#define TESTS_SUPPORT_CHECK_CLOSE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

namespace mjp_test {

// Passes if every |actual[i] - expected[i]| <= limit; NaN never passes. The message names the worst
// element. Works on anything with size() and operator[].
template <class A, class B>
testing::AssertionResult CheckClose(const A& actual, const B& expected, double limit) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure()
           << actual.size() << " elements, expected " << expected.size();
  }
  double worst = -1;
  size_t where = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double difference =
        std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    if (!(difference <= worst)) {
      worst = difference;
      where = i;
      if (std::isnan(difference)) break;
    }
  }
  if (worst <= limit) return testing::AssertionSuccess() << "worst difference " << worst;
  return testing::AssertionFailure()
         << "element " << where << " of " << actual.size() << " is " << actual[where]
         << ", expected " << expected[where] << ": difference " << worst << " above " << limit;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_CHECK_CLOSE_H_
