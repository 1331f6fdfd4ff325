#ifndef TESTS_SUPPORT_RANDOM_SCENES_H_
#define TESTS_SUPPORT_RANDOM_SCENES_H_

#include <random>
#include <vector>

#include "tasks/pusht/pictures/rasterise.h"

namespace mjp_test {

// Scenes within and around the picture: every tenth has whole or half coordinates and a quarter
// turn, where roundings tie; every tenth an object far outside or an angle of many turns.
inline std::vector<mjp::FlatScene> RandomScenes(int count, unsigned seed) {
  std::mt19937 generator(seed);
  const auto uniform = [&](float lo, float hi) {
    return lo + (hi - lo) * static_cast<float>(generator() >> 8) / 16777216.0f;
  };
  std::vector<mjp::FlatScene> scenes(count);
  for (int i = 0; i < count; ++i) {
    mjp::FlatScene& s = scenes[i];
    s = {uniform(-30, 542), uniform(-30, 542), uniform(-130, 642), uniform(-130, 642),
         uniform(-7, 7)};
    if (i % 10 == 3) {
      s = {static_cast<float>(generator() % 1024) / 2, static_cast<float>(generator() % 1024) / 2,
           static_cast<float>(generator() % 1024) / 2, static_cast<float>(generator() % 1024) / 2,
           static_cast<float>(generator() % 9) * 0.78539816f};
    }
    if (i % 10 == 7) {
      const float far = uniform(-1, 1) * 1e9f;
      (generator() % 2 ? s.agent_x : s.block_y) = far;
      s.block_angle *= 1e4f;
    }
  }
  return scenes;
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_RANDOM_SCENES_H_
