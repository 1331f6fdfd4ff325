#ifndef KERNELS_REFERENCE_TOKEN_ACTIVATION_REFERENCE_H_
#define KERNELS_REFERENCE_TOKEN_ACTIVATION_REFERENCE_H_

#include <cmath>

#include "kernels/shared/token_activation.h"

// The definition of the transformers' activations in double precision, for tests.

namespace mjp::reference {

inline double Activate(TokenActivation activation, double x) {
  switch (activation) {
    case TokenActivation::kNone:
      return x;
    case TokenActivation::kRelu:
      return x > 0 ? x : 0 * x;
    case TokenActivation::kGeluErf:  // erfc is exact where 1 + erf is not
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case TokenActivation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case TokenActivation::kQuickGelu:
      return x / (1 + std::exp(-1.702 * x));
    case TokenActivation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace mjp::reference

#endif  // KERNELS_REFERENCE_TOKEN_ACTIVATION_REFERENCE_H_
