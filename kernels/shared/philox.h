#ifndef KERNELS_SHARED_PHILOX_H_
#define KERNELS_SHARED_PHILOX_H_

#include <cmath>
#include <cstdint>

#include "kernels/shared/host_device.h"

// Counter-based noise: Philox4x32-10 (Salmon et al., SC 2011) and Box-Muller. A number is a
// function of its address alone, so it does not depend on threads, batch, neighbours or order.

namespace mjp {

struct PhiloxWords {
  uint32_t w[4];
};

// The ten rounds of Philox4x32 on `counter` under a key of two words.
MJP_HOST_DEVICE inline PhiloxWords Philox(PhiloxWords counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.w[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter.w[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.w[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.w[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Value of `step` in the address of the noise a chain starts from; other steps are timesteps.
inline constexpr uint32_t kStartStep = 0xFFFFFFFFu;

// Four standard normal numbers: elements 4 * quad ... 4 * quad + 3 of the noise of one decision
// (`seed` of the episode, index of the decision) at one step.
MJP_HOST_DEVICE inline void NormalQuad(uint64_t seed, uint32_t decision, uint32_t step,
                                       uint32_t quad, float normals[4]) {
  const PhiloxWords bits = Philox({{quad, step, decision, 0}}, static_cast<uint32_t>(seed),
                                  static_cast<uint32_t>(seed >> 32));
  for (int i = 0; i < 4; i += 2) {
    // 24 bits each: the radius from (0, 1], the angle from [0, 2 pi)
    const float u = static_cast<float>((bits.w[i] >> 8) + 1) * 0x1p-24f;
    const float angle = static_cast<float>(bits.w[i + 1] >> 8) * 0x1p-24f * 6.2831853f;
    const float radius = sqrtf(-2.0f * logf(u));
    normals[i] = radius * cosf(angle);
    normals[i + 1] = radius * sinf(angle);
  }
}

}  // namespace mjp

#endif  // KERNELS_SHARED_PHILOX_H_
