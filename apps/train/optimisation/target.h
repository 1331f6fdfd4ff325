#ifndef APPS_TRAIN_OPTIMISATION_TARGET_H_
#define APPS_TRAIN_OPTIMISATION_TARGET_H_

#include <ATen/ATen.h>

#include "policy/checkpoint/config.h"

namespace mjp::app {

// What the network has to tell of signal * clean + sigma * noise; all of one shape, or spread to
// it.
inline at::Tensor DiffusionTarget(mjp::PredictionType prediction, const at::Tensor& clean,
                                  const at::Tensor& noise, const at::Tensor& signal,
                                  const at::Tensor& sigma) {
  switch (prediction) {
    case mjp::PredictionType::kEpsilon:
      return noise;
    case mjp::PredictionType::kSample:
      return clean;
    case mjp::PredictionType::kVPrediction:
      return signal * noise - sigma * clean;
  }
  return noise;
}

}  // namespace mjp::app

#endif  // APPS_TRAIN_OPTIMISATION_TARGET_H_
