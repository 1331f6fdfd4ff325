#ifndef TESTS_SUPPORT_PATIENCE_H_
#define TESTS_SUPPORT_PATIENCE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

// How tests wait for a program in a window.

namespace mjp_test {

inline constexpr double kPatience = 60;  // seconds, for a machine that is busy

inline void Sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Looks at `condition` five times a second, until it holds or patience ends: whether it held.
inline bool Until(const std::function<bool()>& condition) {
  constexpr double kPeriod = 0.2;
  for (double waited = 0; waited < kPatience; waited += kPeriod) {
    if (condition()) return true;
    Sleep(kPeriod);
  }
  return false;
}

// What `look` gives once `looks` in a row have given the same as the one before.
template <class Look>
auto Settled(const Look& look, int looks) {
  auto now = look();
  int equal = 0;
  EXPECT_TRUE(Until([&] {
    const auto before = std::exchange(now, look());
    equal = before == now ? equal + 1 : 0;
    return equal == looks;
  })) << "it does not come to rest";
  return now;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_PATIENCE_H_
