#ifndef KERNELS_CPU_CHECKED_RANGE_H_
#define KERNELS_CPU_CHECKED_RANGE_H_

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace mjp::cpu {

// Under AddressSanitizer: ends the process with its report where one of `count` values may not be
// touched. For loops that are compiled without the sanitizer's own check of each access. Always
// inlined: see kernels/cpu/features.h.
template <typename T>
[[gnu::always_inline]] inline void CheckRange([[maybe_unused]] const T* begin,
                                              [[maybe_unused]] size_t count) {
#ifdef __SANITIZE_ADDRESS__
  void* const bad = __asan_region_is_poisoned(const_cast<T*>(begin), count * sizeof(T));
  if (bad != nullptr) static_cast<void>(*static_cast<const volatile char*>(bad));
#endif
}

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_CHECKED_RANGE_H_
