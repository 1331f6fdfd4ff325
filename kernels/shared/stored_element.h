#ifndef KERNELS_SHARED_STORED_ELEMENT_H_
#define KERNELS_SHARED_STORED_ELEMENT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "kernels/shared/format.h"

// What the host packs for the GPU: float32 values as operands of a format.

namespace mjp {

// Nearest value with 10 mantissa bits, ties away from zero, as cvt.rna.tf32 does.
inline float RoundToTf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&x, &bits, 4);
  return x;
}

// Writes `value` at `at` as the format stores weights.
inline void StoreElement(Format format, float value, uint8_t* at) {
  if (format == Format::kFp16) {
    const __half h = __float2half_rn(value);
    std::memcpy(at, &h, 2);
  } else if (format == Format::kBf16) {
    const __nv_bfloat16 h = __float2bfloat16_rn(value);
    std::memcpy(at, &h, 2);
  } else {
    if (format == Format::kTf32) value = RoundToTf32(value);
    std::memcpy(at, &value, 4);
  }
}

// The value at `at`, as the format stores it.
inline float LoadElement(Format format, const uint8_t* at) {
  if (format == Format::kFp16) {
    __half h;
    std::memcpy(&h, at, 2);
    return __half2float(h);
  }
  if (format == Format::kBf16) {
    __nv_bfloat16 h;
    std::memcpy(&h, at, 2);
    return __bfloat162float(h);
  }
  float value;
  std::memcpy(&value, at, 4);
  return value;
}

// `value` rounded as an operand of the format.
inline float RoundedOperand(Format format, float value) {
  if (format == Format::kFp16) return __half2float(__float2half_rn(value));
  if (format == Format::kBf16) return __bfloat162float(__float2bfloat16_rn(value));
  return format == Format::kTf32 ? RoundToTf32(value) : value;
}

}  // namespace mjp

#endif  // KERNELS_SHARED_STORED_ELEMENT_H_
