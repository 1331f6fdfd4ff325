#ifndef KERNELS_CUDA_MEGAKERNEL_EXCHANGE_SPIN_WATCHDOG_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EXCHANGE_SPIN_WATCHDOG_CUH_

#include <cstdint>

#include "kernels/cuda/primitives/ptx.cuh"

// What ends a wait for a value that does not come (README.md, I6).

namespace mjp::megakernel {

// Bounds a thread's spins. After one of them lasted kTimeoutNanoseconds, here or in another CTA,
// all spins end at once and the launch runs to its end on worthless values; the host sees the flag.
// Where the row kernel across clusters still misses partial sums then, it ends with an error.
class SpinWatchdog {
 public:
  __device__ explicit SpinWatchdog(int* flag) : flag_(flag) {}

  // Whether to stop spinning; called after try number `tries` of a spin.
  __device__ __forceinline__ bool TimedOut(int tries) {
    if (timed_out_) return true;
    if ((tries & 1023) != 1023) return false;
    if (tries == 1023) begin_ = GlobalNanoseconds();
    if (GlobalNanoseconds() - begin_ > kTimeoutNanoseconds) *static_cast<volatile int*>(flag_) = 1;
    timed_out_ = *static_cast<volatile int*>(flag_) != 0;
    return timed_out_;
  }

 private:
  static constexpr uint64_t kTimeoutNanoseconds = 2'000'000'000;
  int* flag_;
  uint64_t begin_ = 0;
  bool timed_out_ = false;
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EXCHANGE_SPIN_WATCHDOG_CUH_
