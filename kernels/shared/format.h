#ifndef KERNELS_SHARED_FORMAT_H_
#define KERNELS_SHARED_FORMAT_H_

#include <cstddef>

namespace mjp {

// Number formats of the GPU's convolutions and linear layers; sums are always float32.
enum class Format {
  kFp32,  // float32 operands, fused multiply-add on the ordinary cores
  kTf32,  // float32 storage, operands rounded to 10 mantissa bits
  kFp16,
  kBf16,
};

// Bytes of one stored activation or weight.
constexpr size_t FormatBytes(Format f) { return f == Format::kFp16 || f == Format::kBf16 ? 2 : 4; }

}  // namespace mjp

#endif  // KERNELS_SHARED_FORMAT_H_
