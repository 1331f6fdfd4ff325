#ifndef TASKS_PHYSICS_RANDOM_STATE_H_
#define TASKS_PHYSICS_RANDOM_STATE_H_

#include <cstdint>
#include <random>

namespace mjp::app {

// NumPy's legacy generator `numpy.random.RandomState(seed)`, bit for bit: the benchmark defines
// its starts by it.
class RandomState {
 public:
  explicit RandomState(uint32_t seed) : engine_(seed) {}

  // An integer of [low, high), as `randint(low, high)`. Needs low < high, high - low <= 2^32 - 1.
  int64_t RandInt(int64_t low, int64_t high);

  // A double of [0, 1) with 53 random bits, as `random_sample()`.
  double RandomSample();

  // A standard normal number, as `randn()` (Marsaglia's polar method; every second one is cached).
  double Randn();

 private:
  std::mt19937 engine_;
  double cached_normal_ = 0;
  bool has_cached_normal_ = false;
};

}  // namespace mjp::app

#endif  // TASKS_PHYSICS_RANDOM_STATE_H_
