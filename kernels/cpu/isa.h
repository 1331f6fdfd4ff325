#ifndef KERNELS_CPU_ISA_H_
#define KERNELS_CPU_ISA_H_

namespace mjp {

// Instruction sets the CPU kernels are compiled for, slowest first.
enum class Isa { kBaseline, kAvx2, kAvx512 };

// The best instruction set of this processor, or the one named by the environment variable
// MJPOLICY_ISA (baseline, avx2, avx512) if that is lower. Decided once. Throws Error for another
// name.
Isa ActiveIsa();

const char* IsaName(Isa isa);

}  // namespace mjp

#endif  // KERNELS_CPU_ISA_H_
