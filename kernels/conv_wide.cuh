#ifndef KERNELS_CONV_WIDE_CUH_
#define KERNELS_CONV_WIDE_CUH_

#include <cuda_runtime_api.h>

#include "kernels/conv.cuh"

// The convolution of many positions, bound by arithmetic: Hopper's warpgroup products.

namespace dp {

// How a shape runs. Depends on the shape alone.
struct WideConvConfig {
  int block_m = 128, block_n = 64;  // positions x out channels of a block; 0: not supported
  int split_k = 1;                  // blocks of a cluster that share one tile's sum
  bool alone = false;               // at most one block for each multiprocessor: a deeper ring
};

// Chooses by a count of the products that the busiest multiprocessor makes.
WideConvConfig ChooseWideConvConfig(const ConvShape& shape);

// Whether the device runs the code compiled for sm_90a, not the empty kernels of the others.
bool DeviceHasWgmma();

// Whether this convolution runs here (16-bit formats, enough positions, out channels in multiples
// of 64, a GPU of compute capability 9.0); otherwise the general kernel takes it.
bool WideConvSupports(Format format, const ConvArgs& args);

// Enqueues the convolution. `args` must be supported.
void LaunchWideConv(Format format, const ConvArgs& args, cudaStream_t stream);

// The same for the 32-bit formats (kernels/conv_wide32.cu).
bool WideConv32Supports(Format format, const ConvArgs& args);
void LaunchWideConv32(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace dp

#endif  // KERNELS_CONV_WIDE_CUH_
