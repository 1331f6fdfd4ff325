#ifndef KERNELS_POWER_OF_TWO_H_
#define KERNELS_POWER_OF_TWO_H_

#include <bit>

// What the plans of the fused kernels, whose indices are bits, ask about sizes.

namespace dp {

inline bool IsPowerOfTwo(int n) { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace dp

#endif  // KERNELS_POWER_OF_TWO_H_
