#include "kernels/cpu/product/interleave.h"

// compiled once per instruction set: see kernels/cpu/simd.h

#pragma GCC diagnostic ignored "-Wignored-attributes"  // a register's, as a template's argument

namespace mjp::cpu::MJP_ISA {

void Interleave(const float* const* rows, int64_t offset, int count, int length, float* out) {
  const float* from[kLanes];  // those beyond `count` are written over by the next k
  for (int p = 0; p < kLanes; ++p) from[p] = rows[p < count ? p : count - 1] + offset;
  int k = 0;
  for (; k + kLanes <= length; k += kLanes) {
    simd::PacketBlock<Packet, kLanes> block;
#pragma GCC unroll 16
    for (int p = 0; p < kLanes; ++p) block.packet[p] = Load(from[p] + k);
    simd::ptranspose(block);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i, out += count) Store(out, block.packet[i]);
  }
  for (; k < length; ++k) {
    for (int p = 0; p < count; ++p) *out++ = from[p][k];
  }
}

}  // namespace mjp::cpu::MJP_ISA
