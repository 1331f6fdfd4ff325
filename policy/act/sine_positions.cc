#include "policy/act/sine_positions.h"

#include <cmath>
#include <cstddef>

namespace mjp {
namespace {

constexpr float kTwoPi = 6.283185307179586f, kEpsilon = 1e-6f, kTemperature = 10000;

// Where cell `i` of `count` stands: positions begin at 1, and the last is the whole turn.
float Angle(int i, int count) {
  return static_cast<float>(i + 1) / (static_cast<float>(count) + kEpsilon) * kTwoPi;
}

}  // namespace

std::vector<float> SinePositions(int height, int width, int channels) {
  const int half = channels / 2;
  std::vector<float> divisors(half);
  for (int c = 0; c < half; ++c) {
    const float exponent = static_cast<float>(2 * (c / 2)) / static_cast<float>(half);
    divisors[c] = std::pow(kTemperature, exponent);
  }
  std::vector<float> positions;
  positions.reserve(size_t{1} * height * width * channels);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (const float angle : {Angle(y, height), Angle(x, width)}) {
        for (int c = 0; c < half; ++c) {
          const float turned = angle / divisors[c];
          positions.push_back(c % 2 == 0 ? std::sin(turned) : std::cos(turned));
        }
      }
    }
  }
  return positions;
}

}  // namespace mjp
