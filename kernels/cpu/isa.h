#ifndef KERNELS_CPU_ISA_H_
#define KERNELS_CPU_ISA_H_

namespace mjp {

// Instruction sets the CPU kernels are compiled for. All but the first give the same bits.
enum class Isa {
  kUnfused,   // x86: SSE2, multiply-adds rounded twice; faster than kBaseline, taken by name alone
  kBaseline,  // SSE2 with multiply-adds rounded once, by software; NEON on aarch64
  kAvx2,      // with FMA
  kAvx512,
};

// The best instruction set of this processor, or the one named by the environment variable
// MJPOLICY_ISA (unfused, baseline, avx2, avx512) if that is lower. Decided once. Throws Error for
// another name.
Isa ActiveIsa();

const char* IsaName(Isa isa);

// What results of an evaluation depend on of the processor: "x86_64", "x86_64 without FMA" (where
// the C library has other sines, which MuJoCo uses), "x86_64 unfused", "aarch64" (another MuJoCo).
const char* ResultProcessor();

}  // namespace mjp

#endif  // KERNELS_CPU_ISA_H_
