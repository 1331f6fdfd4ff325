#ifndef POLICY_CUDA_FORMAT_OF_H_
#define POLICY_CUDA_FORMAT_OF_H_

#include "kernels/shared/format.h"
#include "policy/policy.h"

namespace mjp {

// The kernels' format of a resolved precision; kAuto is the fastest within the goldens' limits.
constexpr Format FormatOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return Format::kFp32;
    case Precision::kTf32:
      return Format::kTf32;
    case Precision::kBf16:
      return Format::kBf16;
    case Precision::kAuto:
    case Precision::kFp16:
      break;
  }
  return Format::kFp16;
}

}  // namespace mjp

#endif  // POLICY_CUDA_FORMAT_OF_H_
