#include "policy/act/temporal_ensemble.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mjp {

TemporalEnsemble::TemporalEnsemble(double coefficient, int horizon, int action_dim)
    : horizon_(horizon), action_dim_(action_dim) {
  double sum = 0;
  for (int i = 0; i < horizon; ++i) {
    weights_.push_back(std::exp(static_cast<float>(-coefficient) * static_cast<float>(i)));
    sums_.push_back(static_cast<float>(sum += weights_.back()));
  }
}

void TemporalEnsemble::Fold(std::span<const float> before, int folded,
                            std::span<float> chunk) const {
  if (folded == 0) return;
  for (int j = 0; j + 1 < horizon_; ++j) {
    const int count = std::min(folded, horizon_ - 1 - j);  // chunks that spoke of this step
    const float* old = &before[size_t{1} * (j + 1) * action_dim_];
    float* row = &chunk[size_t{1} * j * action_dim_];
    for (int c = 0; c < action_dim_; ++c) {
      const float known = old[c] * sums_[count - 1], said = row[c] * weights_[count];
      row[c] = (known + said) / sums_[count];
    }
  }
}

std::vector<float> TemporalEnsemble::Shares(int chunks) const {
  std::vector<float> shares(weights_.begin(), weights_.begin() + chunks);
  for (float& share : shares) share /= sums_[chunks - 1];
  return shares;
}

std::optional<TemporalEnsemble> EnsembleOf(const PolicyConfig& config) {
  if (!config.temporal_ensemble) return std::nullopt;
  return TemporalEnsemble(*config.temporal_ensemble, config.horizon, config.action_dim);
}

}  // namespace mjp
