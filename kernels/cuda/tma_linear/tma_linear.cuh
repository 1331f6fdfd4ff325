#ifndef KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
#define KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/conv/conv.cuh"
#include "kernels/cuda/tma_linear/plan.h"

// Linear layers of some hundreds of tokens by TMA with multicast, for GPUs of compute capability
// 9.0.

namespace mjp::tma_linear {

// Whether this linear layer runs here and ends earlier than by `other_time` microseconds: 16-bit
// formats, shapes that MakePlan takes, a GPU of compute capability 9.0.
bool Supports(Format format, const ConvArgs& args, double other_time);

// Enqueues y = act(x W^T + bias + row_bias) (+ residual, ReLU). `args` must be supported. Throws
// Error where the driver or the launch refuses it.
void Launch(Format format, const ConvArgs& args, cudaStream_t stream);

// The same by one of Plans(args), for measurements and tests.
void LaunchPlan(Format format, const ConvArgs& args, const Plan& plan, cudaStream_t stream);

}  // namespace mjp::tma_linear

#endif  // KERNELS_CUDA_TMA_LINEAR_TMA_LINEAR_CUH_
