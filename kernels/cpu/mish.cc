#include "kernels/cpu/mish.h"

#include "kernels/cpu/simd.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {

void Mish(const float* x, int64_t size, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) Store(y + i, Mish(Load(x + i)));
  if (i == size) return;
  float lanes[kLanes] = {};
  for (int64_t rest = i; rest < size; ++rest) lanes[rest - i] = x[rest];
  Store(lanes, Mish(Load(lanes)));
  for (int64_t rest = i; rest < size; ++rest) y[rest] = lanes[rest - i];
}

}  // namespace mjp::cpu::MJP_ISA
