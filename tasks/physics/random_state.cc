#include "tasks/physics/random_state.h"

#include <bit>
#include <cmath>

namespace mjp::app {

int64_t RandomState::RandInt(int64_t low, int64_t high) {
  const uint32_t range = static_cast<uint32_t>(high - 1 - low);
  if (range == 0) return low;
  // masked rejection: the smallest 2^k - 1 that covers the range, drawn until it falls inside
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(range);
  uint32_t value;
  do {
    value = static_cast<uint32_t>(engine_()) & mask;
  } while (value > range);
  return low + value;
}

double RandomState::RandomSample() {
  const uint32_t high = static_cast<uint32_t>(engine_()) >> 5;
  const uint32_t low = static_cast<uint32_t>(engine_()) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double RandomState::Randn() {
  if (has_cached_normal_) {
    has_cached_normal_ = false;
    return cached_normal_;
  }
  double x1, x2, r2;
  do {
    x1 = 2.0 * RandomSample() - 1.0;
    x2 = 2.0 * RandomSample() - 1.0;
    r2 = x1 * x1 + x2 * x2;
  } while (r2 >= 1.0 || r2 == 0.0);
  const double factor = std::sqrt(-2.0 * std::log(r2) / r2);
  cached_normal_ = factor * x1;
  has_cached_normal_ = true;
  return factor * x2;
}

}  // namespace mjp::app
