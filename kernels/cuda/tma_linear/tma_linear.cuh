#ifndef KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
#define KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/tma_linear/plan.h"

// Linear layers of some hundreds of tokens by TMA with multicast, for GPUs of compute capability
// 9.0.

namespace mjp::tma_linear {

// Microseconds that it takes, as measured; infinite where it does not run: it takes 16-bit formats,
// shapes that MakePlan takes, a GPU of compute capability 9.0.
double Time(Format format, const ConvArgs& args);

// Enqueues y = act(x W^T + bias + row_bias) (+ residual, ReLU). Only where Time is finite. Throws
// Error where the driver or the launch refuses it.
void Launch(Format format, const ConvArgs& args, cudaStream_t stream);

// The same by one of Plans(args), for measurements and tests.
void LaunchPlan(Format format, const ConvArgs& args, const Plan& plan, cudaStream_t stream);

}  // namespace mjp::tma_linear

#endif  // KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
