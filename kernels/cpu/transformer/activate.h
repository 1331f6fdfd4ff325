#ifndef KERNELS_CPU_TRANSFORMER_ACTIVATE_H_
#define KERNELS_CPU_TRANSFORMER_ACTIVATE_H_

#include <cstdint>

#include "kernels/shared/token_activation.h"

namespace mjp::cpu {

// y[i] = activation(x[i]) for `size` numbers; y may be x. Within 3e-7 + 1e-6 |y| of the definition;
// NaN stays NaN.
void Activate(TokenActivation activation, const float* x, int64_t size, float* y);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_ACTIVATE_H_
