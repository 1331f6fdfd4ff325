#ifndef KERNELS_CUDA_MEGAKERNEL_SMEM_LAYOUT_CUH_
#define KERNELS_CUDA_MEGAKERNEL_SMEM_LAYOUT_CUH_

#include "kernels/cuda/megakernel/weight_pipeline.cuh"
#include "kernels/cuda/sampler/picard.cuh"

// The shared memory of a CTA: one layout, which the host sizes and the kernel uses.

namespace mjp::megakernel {

// Offsets in shared memory: the weight buffers are at 0, the input at `end`. more_passes: the MMA
// warps tell the epilogue warps whether another pass follows.
struct SmemLayout {
  int layers, tiles, descriptors, x, first, head, head_bias, timesteps, states, previous, moments,
      residuals, more_passes, end;
  __host__ __device__ SmemLayout(const Args& args) {
    const CommonArgs& a = args.common;
    const int elements = a.length * a.action_dim, rows = a.rows;
    layers = kMmaWarps * static_cast<int>(sizeof(WeightBuffer));
    tiles = layers + args.layer_count * static_cast<int>(sizeof(Layer));
    descriptors = tiles + args.layer_count * static_cast<int>(sizeof(WeightTile));
    x = descriptors + args.layer_count * static_cast<int>(sizeof(LayerDescriptor));
    first = x + XBytes(a);
    head = first + (a.first.taps + 1) * a.first.in_c * (a.first.out_c / kNormGroups) * 4;
    head_bias = head + a.last_channels / kNormGroups * a.action_dim * 4;
    timesteps = head_bias + a.action_dim * 4;
    states = timesteps + rows * 4;
    previous = states + rows * static_cast<int>(sizeof(PicardState));
    moments = (previous + (a.picard.window > 0 ? 2 * rows * elements * 4 : 0) + 15) / 16 * 16;
    residuals = moments + kMmaWarps * 8;
    more_passes =
        residuals + (args.warp_specialized ? args.row_batches * kEpilogueThreads * 16 : 0);
    end = (more_passes + 1 + 127) / 128 * 128;
  }
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_SMEM_LAYOUT_CUH_
