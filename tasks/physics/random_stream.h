#ifndef TASKS_PHYSICS_RANDOM_STREAM_H_
#define TASKS_PHYSICS_RANDOM_STREAM_H_

#include <cstdint>

namespace mjp::app {

// A stream of random numbers named by a key (SplitMix64): the same key gives the same numbers,
// whoever asks and when. Integer arithmetic throughout, so every processor gives the same bits.
class RandomStream {
 public:
  // Streams with different keys are independent.
  explicit RandomStream(uint64_t seed, uint64_t a = 0, uint64_t b = 0)
      : state_(Mix(Mix(Mix(seed + kStep) + a + kStep) + b + kStep)) {}

  uint64_t Bits() { return Mix(state_ += kStep); }

  // Uniform in [0, 1).
  float Uniform() { return static_cast<float>(Bits() >> 40) * 0x1p-24f; }
  float Uniform(float low, float high) { return low + (high - low) * Uniform(); }

  // Uniform in [0, count).
  int Below(int count) {
    return static_cast<int>(((Bits() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }

  // Nearly normal, deviation 1, within +-3.46: the sum of four uniform numbers, scaled.
  float Normal() {
    const uint64_t bits = Bits();
    const int sum = static_cast<int>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                     (bits >> 32 & 0xffff) + (bits >> 48));
    return static_cast<float>(sum - 2 * 0xffff) * (1.7320508f / 0x1p16f);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace mjp::app

#endif  // TASKS_PHYSICS_RANDOM_STREAM_H_
