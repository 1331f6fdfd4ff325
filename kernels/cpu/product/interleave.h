#ifndef KERNELS_CPU_PRODUCT_INTERLEAVE_H_
#define KERNELS_CPU_PRODUCT_INTERLEAVE_H_

#include <cstdint>

#include "kernels/cpu/product/sums.h"

// compiled once per instruction set: see kernels/cpu/simd.h

namespace mjp::cpu::MJP_ISA {

// out (length, count) = rows (count, length) from `offset` on, for a tile of `count` positions: so
// a sum reads one run of memory, in the order in which it needs it (the packed block of Goto and
// van de Geijn 2008). Writes up to kLanes floats more than it should.
void Interleave(const float* const* rows, int64_t offset, int count, int length, float* out);

}  // namespace mjp::cpu::MJP_ISA

#endif  // KERNELS_CPU_PRODUCT_INTERLEAVE_H_
