#ifndef POLICY_CHECKPOINT_NORMALIZER_H_
#define POLICY_CHECKPOINT_NORMALIZER_H_

#include <cstddef>
#include <span>

#include "policy/checkpoint/network.h"

// LeRobot's normalisation in float32, operation by operation.

namespace mjp {

// Raw value `x` of element (or picture channel) `i` of a feature, normalised. Pictures: raw is
// u8 / 255.
inline float Normalize(const FeatureStats& stats, size_t i, float x) {
  switch (stats.mode) {
    case Normalization::kIdentity:
      return x;
    case Normalization::kMeanStd:
      return (x - stats.first[i]) / (stats.second[i] + 1e-8f);
    case Normalization::kMinMax:
    case Normalization::kQuantiles:
    case Normalization::kQuantile10:
      return 2.0f * (x - stats.first[i]) / (stats.second[i] - stats.first[i]) - 1.0f;
  }
  return x;
}

// The inverse, for actions.
inline float Unnormalize(const FeatureStats& stats, size_t i, float x) {
  switch (stats.mode) {
    case Normalization::kIdentity:
      return x;
    case Normalization::kMeanStd:
      return x * stats.second[i] + stats.first[i];
    case Normalization::kMinMax:
      return (x + 1.0f) / 2.0f * (stats.second[i] - stats.first[i]) + stats.first[i];
    case Normalization::kQuantiles:
    case Normalization::kQuantile10:
      return (x + 1.0f) * (stats.second[i] - stats.first[i]) / 2.0f + stats.first[i];
  }
  return x;
}

// Rows of `dim` elements, in place.
inline void Normalize(const FeatureStats& stats, size_t dim, std::span<float> rows) {
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = Normalize(stats, i % dim, rows[i]);
}
inline void Unnormalize(const FeatureStats& stats, size_t dim, std::span<float> rows) {
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = Unnormalize(stats, i % dim, rows[i]);
}

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_NORMALIZER_H_
