#ifndef KERNELS_CUDA_CONV_MATRIX_VECTOR_CUH_
#define KERNELS_CUDA_CONV_MATRIX_VECTOR_CUH_

#include "kernels/cuda/conv/conv.cuh"

// A linear layer of one position whose weights are more than a Hopper's L2 keeps: bound by memory.

namespace mjp {

// Whether it takes `args`, 16-bit formats with float32 results, and is faster than other kernels.
bool MatrixVectorSupports(Format format, const ConvArgs& args);
// Enqueues y[m] = bias[m] + sum over k of w[m][k] x[k]: of one position, whatever its size.
void LaunchMatrixVector(Format format, const ConvArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_MATRIX_VECTOR_CUH_
