#include "tasks/evaluation/disturbances.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/shared/philox.h"

namespace mjp::app {
namespace {

// what a random number is for: the `step` of its address (a chain's own steps stay below 1000)
enum Purpose : uint32_t {
  kPixels = 100000,
  kEpisode = 200000,
  kAction = 300000,
  kPush = 400000,
  kMoment = 500000
};

constexpr int kStepsPerPush = 20;

struct Quad {
  float n[4];
};

Quad Normals(uint32_t seed, int tick, Purpose purpose, uint32_t quad) {
  Quad q;
  mjp::NormalQuad(seed, static_cast<uint32_t>(tick), purpose, quad, q.n);
  return q;
}

// uniform in [-1, 1), four numbers
Quad Uniforms(uint32_t seed, int tick, Purpose purpose) {
  const mjp::PhiloxWords bits =
      mjp::Philox({{0, purpose, static_cast<uint32_t>(tick), 1}}, seed, 0);
  Quad q;
  for (int i = 0; i < 4; ++i) q.n[i] = static_cast<float>(bits.w[i] >> 8) * 0x1p-23f - 1;
  return q;
}

void Shift(std::span<uint8_t> picture, int width, int dx, int dy) {
  const std::vector<uint8_t> source(picture.begin(), picture.end());
  const int height = static_cast<int>(picture.size()) / (3 * width);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      // the edge repeats
      const int sy = std::clamp(y - dy, 0, height - 1), sx = std::clamp(x - dx, 0, width - 1);
      std::copy_n(&source[3 * (sy * width + sx)], 3, &picture[3 * (y * width + x)]);
    }
  }
}

// `turn` in [-1, 1) is the direction.
std::array<double, 2> Towards(float turn, double size) {
  const double angle = M_PI * turn;
  return {size * std::cos(angle), size * std::sin(angle)};
}

std::array<double, 2> PushAtRandom(double size, int count, uint32_t seed, int tick) {
  std::array<double, 2> sum = {};
  for (int i = 0; i < count; ++i) {
    const Quad draw = Uniforms(seed, i, kMoment);
    const int moment = 1 + static_cast<int>((draw.n[0] + 1) / 2 * kPushedSteps);
    if (moment != tick) continue;
    const std::array<double, 2> push = Towards(draw.n[1], size);
    sum[0] += push[0];
    sum[1] += push[1];
  }
  return sum;
}

uint8_t ToLevel(double value) {
  return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

}  // namespace

bool DisturbsPictures(const Conditions& c) {
  return c.picture_noise != 0 || c.brightness != 0 || c.picture_shift != 0;
}

void DisturbPicture(const Conditions& c, uint32_t seed, int tick, int width,
                    std::span<uint8_t> picture) {
  const Quad episode = Uniforms(seed, 0, kEpisode);
  if (c.picture_shift > 0) {
    // uniform over the whole numbers of [-shift, shift]
    const auto whole = [&c](float u) {
      return static_cast<int>(std::floor((u + 1) / 2 * (2 * c.picture_shift + 1))) -
             c.picture_shift;
    };
    Shift(picture, width, whole(episode.n[0]), whole(episode.n[1]));
  }
  const double gain = 1 + c.brightness * episode.n[2];
  for (size_t i = 0; i < picture.size(); i += 4) {
    Quad noise = {};
    if (c.picture_noise > 0) noise = Normals(seed, tick, kPixels, static_cast<uint32_t>(i / 4));
    for (size_t k = i; k < std::min(i + 4, picture.size()); ++k) {
      picture[k] = ToLevel(gain * picture[k] + c.picture_noise * noise.n[k - i]);
    }
  }
}

void DisturbAction(const Conditions& c, uint32_t seed, int tick, std::span<double> action) {
  if (c.action_noise == 0) return;
  for (size_t i = 0; i < action.size(); i += 4) {
    const Quad noise = Normals(seed, tick, kAction, static_cast<uint32_t>(i / 4));
    for (size_t k = i; k < std::min(i + 4, action.size()); ++k) {
      action[k] += c.action_noise * noise.n[k - i];
    }
  }
}

std::array<double, 2> PushAt(double size, int count, uint32_t seed, int tick) {
  if (size == 0 || tick == 0) return {};
  if (count > 0) return PushAtRandom(size, count, seed, tick);
  if (tick % kStepsPerPush != 0) return {};
  return Towards(Uniforms(seed, tick, kPush).n[0], size);
}

}  // namespace mjp::app
