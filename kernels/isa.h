#ifndef KERNELS_ISA_H_
#define KERNELS_ISA_H_

namespace dp {

// Instruction sets the CPU kernels are compiled for, slowest first.
enum class Isa { kBaseline, kAvx2, kAvx512 };

// The best instruction set of this processor, or the one named by the environment variable
// PUSHT_ISA (baseline, avx2, avx512) if that is lower. Decided once.
Isa ActiveIsa();

const char* IsaName(Isa isa);

}  // namespace dp

#endif  // KERNELS_ISA_H_
