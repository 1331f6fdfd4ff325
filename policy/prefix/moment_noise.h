#ifndef POLICY_PREFIX_MOMENT_NOISE_H_
#define POLICY_PREFIX_MOMENT_NOISE_H_

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/shared/philox.h"
#include "policy/checkpoint/config.h"

namespace mjp {

// `step` in the address of a moment's noise; other steps are timesteps, or kStartStep.
inline constexpr uint32_t kMomentStep = kStartStep - 1;

// Writes to `start` (H, action_dim) the noise that the chain of decision `decision` starts from,
// one being made every `action_steps` control steps of the episode with `seed`, with a deviation of
// `temperature`. The noise belongs
// to the moment that a row is for, so chunks of successive decisions have it in common where they
// overlap, as in the rolling buffer of Streaming Diffusion Policy (Hoeg et al. 2024).
inline void FillMomentNoise(const PolicyConfig& config, uint64_t seed, uint32_t decision,
                            int action_steps, float temperature, std::span<float> start) {
  const uint32_t moment = decision * static_cast<uint32_t>(action_steps);
  for (int row = 0; row < config.horizon; ++row) {
    for (int c = 0; c < config.action_dim; c += 4) {
      float normals[4];
      NormalQuad(seed, moment + static_cast<uint32_t>(row), kMomentStep,
                 static_cast<uint32_t>(c / 4), normals);
      for (int e = 0; e < std::min(4, config.action_dim - c); ++e)
        start[size_t{1} * row * config.action_dim + c + e] = temperature * normals[e];
    }
  }
}

}  // namespace mjp

#endif  // POLICY_PREFIX_MOMENT_NOISE_H_
