#ifndef BASE_POWER_OF_TWO_H_
#define BASE_POWER_OF_TWO_H_

#include <bit>

// What the plans of the fused kernels, whose indices are bits, ask about sizes.

namespace mjp {

inline bool IsPowerOfTwo(int n) { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace mjp

#endif  // BASE_POWER_OF_TWO_H_
