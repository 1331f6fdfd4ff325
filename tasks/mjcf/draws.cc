#include "tasks/mjcf/draws.h"

#include <cmath>
#include <numbers>

#include "kernels/shared/philox.h"

namespace mjp::app {
namespace {

// the last word of the address tells starts from noise and disturbances
PhiloxWords Bits(uint32_t seed, uint32_t entry, uint32_t component) {
  constexpr uint32_t kStart = 2;
  return Philox({{component, entry, 0, kStart}}, seed, 0);
}

double ToUnit(uint32_t high, uint32_t low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0;
}

}  // namespace

double Draws::Uniform(uint32_t entry, uint32_t component) {
  if (sequence_) return sequence_->RandomSample();
  const PhiloxWords bits = Bits(seed_, entry, component);
  return ToUnit(bits.w[0], bits.w[1]);
}

double Draws::Normal(uint32_t entry, uint32_t component) {
  if (sequence_) return sequence_->Randn();
  const PhiloxWords bits = Bits(seed_, entry, component);
  // the radius from (0, 1], the angle from [0, 2 pi)
  const double radius = std::sqrt(-2 * std::log(1 - ToUnit(bits.w[0], bits.w[1])));
  return radius * std::cos(2 * std::numbers::pi * ToUnit(bits.w[2], bits.w[3]));
}

int Draws::Choice(uint32_t entry, int count) {
  if (sequence_) return static_cast<int>(sequence_->RandInt(0, count));
  return static_cast<int>((uint64_t{Bits(seed_, entry, 0).w[0]} * static_cast<uint64_t>(count)) >>
                          32);
}

}  // namespace mjp::app
