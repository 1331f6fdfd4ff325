#ifndef KERNELS_CUDA_MEGAKERNEL_TARGET_H_
#define KERNELS_CUDA_MEGAKERNEL_TARGET_H_

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/primitives/gpu_traits.h"

namespace mjp::megakernel {

inline constexpr int kRowsPerBatch = 16, kNormGroups = 8, kCtas = kRowsPerBatch * kNormGroups;
inline constexpr int kLeastCtas = 8;  // of the portable form

// On what the megakernel runs: Hopper's form takes 128 CTAs, the portable one what is there.
struct Target {
  bool portable = false;
  int ctas = kCtas;
  size_t shared_bytes = 0;  // most that a CTA may have

  static Target On(const GpuTraits& gpu) {
    return {!gpu.Wgmma() || gpu.multiprocessors < kCtas, std::min(gpu.multiprocessors, kCtas),
            static_cast<size_t>(gpu.shared_bytes)};
  }
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_TARGET_H_
