#ifndef TASKS_MJCF_DRAWS_H_
#define TASKS_MJCF_DRAWS_H_

#include <cstdint>
#include <optional>

#include "tasks/physics/random_state.h"

namespace mjp::app {

// The random numbers of one episode's start: Philox addressed by seed, entry and component, or the
// sequence of numpy.random.RandomState(seed).
class Draws {
 public:
  Draws(uint32_t seed, bool numpy) : seed_(seed) {
    if (numpy) sequence_.emplace(seed);
  }

  // In [0, 1), of 53 random bits.
  double Uniform(uint32_t entry, uint32_t component);
  // Standard normal.
  double Normal(uint32_t entry, uint32_t component);
  // Of 0 ... count - 1.
  int Choice(uint32_t entry, int count);

 private:
  uint32_t seed_;
  std::optional<RandomState> sequence_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_DRAWS_H_
