#ifndef KERNELS_CUDA_PRIMITIVES_REGISTERS_CUH_
#define KERNELS_CUDA_PRIMITIVES_REGISTERS_CUH_

#include <cstdint>

// Where values are kept, and when: what the compiler is told of registers, and delays.

namespace mjp {

// This thread's index, read anew: what follows from it is computed where it is used, and not held
// in registers through the whole pass.
__device__ __forceinline__ int RematerializeTid() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Has `value` computed here, and not where it is used.
__device__ __forceinline__ void PinRegister(int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void PinRegister(uint32_t& value) { asm volatile("" : "+r"(value)); }

// Does nothing for so many cycles.
__device__ __forceinline__ void SpinCycles(int cycles) {
  const int begin = clock();
  while (static_cast<int>(clock()) - begin < cycles) {
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_REGISTERS_CUH_
