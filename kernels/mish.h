#ifndef KERNELS_MISH_H_
#define KERNELS_MISH_H_

#include <cstdint>

namespace dp::cpu {

// y[i] = Mish(x[i]) = x tanh(log(1 + e^x)), i < size; y may be x. Relative error below 1e-6.
void Mish(const float* x, int64_t size, float* y);

}  // namespace dp::cpu

#endif  // KERNELS_MISH_H_
