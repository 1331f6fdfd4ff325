#ifndef KERNELS_CPU_TRANSFORMER_SOFTMAX_H_
#define KERNELS_CPU_TRANSFORMER_SOFTMAX_H_

namespace mjp::cpu {

// x = softmax(scale x) of one row of `size` numbers, size >= 1, in place; scale > 0. A row that
// holds NaN or an infinity becomes NaN.
void Softmax(float* x, int size, float scale);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_SOFTMAX_H_
