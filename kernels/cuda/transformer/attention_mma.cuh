#ifndef KERNELS_CUDA_TRANSFORMER_ATTENTION_MMA_CUH_
#define KERNELS_CUDA_TRANSFORMER_ATTENTION_MMA_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/transformer/attention.cuh"

namespace mjp {

// The attention of 16-bit formats by mma.sync. `args` as LaunchTokenAttention has checked them.
void LaunchAttentionMma(Format format, const TokenAttentionArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_TRANSFORMER_ATTENTION_MMA_CUH_
