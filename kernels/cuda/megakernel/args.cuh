#ifndef KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/sampler/picard.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"

// Arguments of a launch besides its layers: x, the sampler, FiLM, the first convolution and the
// head.

namespace mjp::megakernel {

inline constexpr int kMmaWarps = 8, kMmaThreads = 32 * kMmaWarps;

// The terms of a layer's epilogue, by out channel: bias, norm, FiLM, bias of the shortcut.
struct EpilogueTerms {
  const float* bias = nullptr;
  int channels = 0;                                          // of all
  const float *norm_scale = nullptr, *norm_shift = nullptr;  // (channels); null: no norm
  int film_scale = -1, film_shift = -1;  // offsets into a row of FiLM's tables; -1: none
  const float* shortcut_bias = nullptr;
};

// The weights of the first convolution and of its 1x1 shortcut, as in mjp::FirstConvWeights.
struct FirstConvWeights {
  int taps = 0, in_c = 0, out_c = 0;
  const float *weight = nullptr, *shortcut_weight = nullptr;
};

// The 1x1 convolution to the actions: (action_dim, channels), (action_dim).
struct HeadWeights {
  const float *weight = nullptr, *bias = nullptr;
};

// What a launch reads besides its layers.
struct CommonArgs {
  int rows = 0, length = 0, action_dim = 0;
  int all_rows = 0;  // rows of `noise`; this launch has `rows` of them
  int x_halo = 0;    // zeros on either side of a row's x: positions need no bounds check
  FirstConvWeights first;
  int last_channels = 0, last_group_channels = 0;  // of the final convolution
  HeadWeights head;
  float* head_partial_sums = nullptr;  // tagged (rows, norm groups, length * action_dim)
  FilmTables film;
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // step by step: (steps, all_rows, like x); null: DDIM
  int begin = 0, end = 0;                 // step by step: steps of this launch
  float* x = nullptr;                     // (rows, length * action_dim); in and out
  float* output = nullptr;                // step by step: like x, of the network in the last step
  // window > 0: time-parallel, over all its steps; 0 and a state: step by step, each row (one per
  // environment) from the step at which its window was abandoned
  PicardSweepArgs picard;
  TimestampSpan timestamps;  // entry p: the end of pass p, from 1; entry 0 is not the kernel's
  uint32_t* pass_count = nullptr;  // passes that ever ran on these buffers: the epochs go on
  int* timed_out = nullptr;        // becomes 1 where a poll lasted seconds
};

// Shared memory of all rows' x, in bytes: what follows it is read in vectors.
MJP_HOST_DEVICE inline int XBytes(const CommonArgs& a) {
  return (a.rows * (a.length * a.action_dim + 2 * a.x_halo) * 4 + 15) / 16 * 16;
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_
