#ifndef KERNELS_CUDA_ROW_KERNEL_CTA_CUH_
#define KERNELS_CUDA_ROW_KERNEL_CTA_CUH_

#include "kernels/cuda/row_kernel/row_kernel.cuh"

// What the functions of a CTA share.

namespace mjp::row_kernel {

// Where a CTA stands, and what it has.
struct Cta {
  const Args& a;
  uint8_t* shared;
  int row, rank;  // of the CTA in its cluster
  int slice;      // of the out channels; across clusters the cluster's norm group

  __device__ __forceinline__ const Layer& LayerAt(int i) const {
    return reinterpret_cast<const Layer*>(shared + a.shared.layers)[i];
  }
  __device__ __forceinline__ int Elements() const { return a.length * a.action_dim; }
};

// Barriers in a CTA; 0 is __syncthreads'.
enum Signal {
  kSumsReady = 1,  // from one role to the other
  kInputReady,
  // Across clusters:
  kInputStored,  // among the MMA warps
  kGroupMoments  // among either half of the epilogue warps, two
};

// Rows of FiLM's tables that a row of this pass reads.
struct FilmRows {
  const float *step, *cond;
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_CTA_CUH_
