#include "kernels/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace mjp {
namespace {

Isa Best() {
#ifdef MJP_X86
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    return Isa::kAvx512;
  }
  if (avx2) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

Isa Detect() {
  const Isa best = Best();
  const char* wanted = std::getenv("MJPOLICY_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  for (Isa isa : {Isa::kUnfused, Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (std::string_view(wanted) == IsaName(isa)) return std::min(best, isa);
  }
  throw Error(ExitCode::kUsage,
              "MJPOLICY_ISA is '" + std::string(wanted) +
                  "': there are unfused, baseline, avx2 and avx512; unset it or name one");
}

}  // namespace

Isa ActiveIsa() {
  static const Isa isa = Detect();
  return isa;
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kUnfused:
      return "unfused";
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

const char* ResultProcessor() {
#ifdef MJP_X86
  if (ActiveIsa() == Isa::kUnfused) return "x86_64 unfused";
  return __builtin_cpu_supports("fma") ? "x86_64" : "x86_64 without FMA";
#else
  return "aarch64";
#endif
}

}  // namespace mjp
