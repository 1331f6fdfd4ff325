#ifndef KERNELS_CUDA_CONV_FEATURE_HEAD_CUH_
#define KERNELS_CUDA_CONV_FEATURE_HEAD_CUH_

#include "kernels/cuda/conv/conv.cuh"

// What stands behind the last map of a picture's encoder, in one launch, for few pictures.

namespace mjp {

// y = dense(P(pool(x))). `pool` is a 1x1 convolution. P are the keypoints (pool.out_c, 2) that
// LaunchSpatialSoftmax finds; or, without a grid, pool's ReLU as (cells, out_c). Pictures are
// pool.shape.batch.
struct FeatureHeadArgs {
  ConvArgs pool;                    // its y is not written
  const float* pos_grid = nullptr;  // (cells, 2), or null
  ConvArgs dense;                   // its x is not read; y is float32
};

// Whether one launch does it: 16-bit formats, at most 48 cells and 32 channels of `pool`, in
// sixteens, all weights in a CTA's shared memory, and a multiprocessor for each picture.
bool FeatureHeadSupports(Format format, const FeatureHeadArgs& args);

// Enqueues it. `args` must be supported.
void LaunchFeatureHead(Format format, const FeatureHeadArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_FEATURE_HEAD_CUH_
