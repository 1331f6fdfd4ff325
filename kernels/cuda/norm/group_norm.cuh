#ifndef KERNELS_CUDA_NORM_GROUP_NORM_CUH_
#define KERNELS_CUDA_NORM_GROUP_NORM_CUH_

#include <cuda_runtime_api.h>

#include "kernels/shared/activation.h"
#include "kernels/shared/format.h"

namespace mjp {

// FiLM terms of a layer: scale or bias of (row, channel) is
//   step_table[step(row)][offset + channel] + cond[env(row)][offset + channel].
struct FilmArgs {
  const float* step_table = nullptr;  // (timesteps, width); null: no FiLM
  const float* cond = nullptr;        // (environments, width)
  const int* row_step = nullptr;      // (rows): row of step_table
  int rows_per_env = 1;               // env(row) = row / rows_per_env
  int width = 0;
  int scale_offset = -1;  // -1: bias only
  int bias_offset = 0;
};

// The tables by themselves, for kernels that know each layer's offsets and each row's step.
struct FilmTables {
  const float *step_table = nullptr, *cond = nullptr;
  int rows_per_env = 1, width = 0;
};

// y = act(GN(x)), then FiLM, then + residual; or, with residual_first, y = act(GN(x) + residual).
struct GroupNormArgs {
  int rows = 0, positions = 0, channels = 0;  // x: (rows, positions, channels), storage type
  int groups = 8;
  const void* x = nullptr;
  const float *weight = nullptr, *bias = nullptr;  // (channels)
  Activation activation = Activation::kNone;
  FilmArgs film;
  const void* residual = nullptr;  // like x, or null
  bool residual_first = false;
  void* y = nullptr;  // like x; may be x itself
};

// Enqueues the normalisation: eps 1e-5, biased variance over (positions, channels of the group).
// Throws Error for a group larger than 65,536 elements.
void LaunchGroupNorm(Format format, const GroupNormArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_NORM_GROUP_NORM_CUH_
