#ifndef KERNELS_CPU_MISH_H_
#define KERNELS_CPU_MISH_H_

#include <cstdint>

namespace mjp::cpu {

// y[i] = Mish(x[i]) = x tanh(log(1 + e^x)), i < size; y may be x. Relative error below 1e-6.
void Mish(const float* x, int64_t size, float* y);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_MISH_H_
