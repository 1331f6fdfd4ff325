#include "policy/cuda/denoise/standstill.h"

#include "base/error.h"

namespace mjp {

void Standstill::Check() const {
  if (flag_ == nullptr || *static_cast<const volatile int*>(flag_) == 0) return;
  throw Error(ExitCode::kRetryable,
              "the denoising chain on the GPU stood still for seconds: blocks of it were not "
              "running; start the same command again, or use the CPU backend");
}

}  // namespace mjp
