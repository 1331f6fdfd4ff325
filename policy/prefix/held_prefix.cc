#include "policy/prefix/held_prefix.h"

#include <algorithm>

#include "policy/checkpoint/normalizer.h"

namespace mjp {

void FillHeld(const Checkpoint& checkpoint, const PolicyInput& input, bool plan,
              std::span<float> clean, std::span<int> held) {
  const PolicyConfig& config = checkpoint.config;
  const size_t elements = size_t{1} * config.horizon * config.action_dim;
  std::ranges::fill(held, 0);
  for (size_t n = 0; n < input.prefix_steps.size(); ++n) {
    const size_t count = size_t{1} * input.prefix_steps[n] * config.action_dim;
    const size_t copied = plan && count > 0 ? elements : count;
    const std::span<float> chunk = clean.subspan(n * elements, copied);
    std::ranges::copy(input.prefix.subspan(n * elements, copied), chunk.begin());
    Normalize(checkpoint.stats.action, config.action_dim, chunk);
    held[n] = static_cast<int>(count);
  }
}

}  // namespace mjp
