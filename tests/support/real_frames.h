#ifndef TESTS_SUPPORT_REAL_FRAMES_H_
#define TESTS_SUPPORT_REAL_FRAMES_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tasks/pusht/pictures/rasterise.h"

namespace mjp_test {

// Pictures of the original benchmark and the states they show.
struct RealFrames {
  std::vector<mjp::FlatScene> scenes;
  std::vector<uint8_t> rgb;  // (scenes, 96, 96, 3)
};

// The elements of a version 1 .npy file as they lie there.
inline std::vector<uint8_t> NpyPayload(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  return {bytes.begin() + 10 + bytes.at(8) + 256 * bytes.at(9), bytes.end()};
}

// Reads frames_u8.npy and frames_state.npy, float32 (N, 5).
inline RealFrames ReadRealFrames(const std::string& frames_path, const std::string& states_path) {
  RealFrames frames;
  frames.rgb = NpyPayload(frames_path);
  const std::vector<uint8_t> states = NpyPayload(states_path);
  static_assert(sizeof(mjp::FlatScene) == 5 * sizeof(float));
  frames.scenes.resize(states.size() / sizeof(mjp::FlatScene));
  std::memcpy(frames.scenes.data(), states.data(), states.size());
  return frames;
}

// Mean absolute difference per channel value, in levels of 255; both of the same size.
inline double MeanAbsoluteError(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b.at(i));
  return sum / static_cast<double>(a.size());
}

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_REAL_FRAMES_H_
