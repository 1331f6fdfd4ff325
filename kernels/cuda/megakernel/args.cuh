#ifndef KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/cuda/norm_conv/in_out_conv.cuh"
#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "kernels/cuda/sampler/picard.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"

// A whole denoising chain of a few rows in one launch: one block per multiprocessor stays through
// all layers and passes. What a layer hands to the next travels as "words": float32 numbers whose
// lowest mantissa bit is the parity of the pass, so that a reader sees from a number itself whether
// it has been written. There are no barriers between blocks and no flags.

namespace mjp {

inline constexpr int kChainWarps = 8, kChainThreads = 32 * kChainWarps;
inline constexpr int kChainMaxBlocks = 128;  // one per multiprocessor of every H100 SXM and H200
inline constexpr int kChainMaxSplits = 8;
// Chunks of weights in each warp's ring, where a warp multiplies `mi` tiles of 16 channels at once.
MJP_HOST_DEVICE constexpr int ChainRingChunks(int mi) { return mi == 1 ? 8 : 6; }
// Numbers finished together that a block of readers holds, where blocks do not finish outputs.
inline constexpr int kChainReaderNumbers = kChainWarps * 32 * 4;
// Vectors of four channels that a thread finishes (of an item that has the whole block), and the
// warps that share an item's `vectors` where a block has `items` of them at once.
inline constexpr int kChainMaxVectors = 4, kChainOwnVectors = 2;
MJP_HOST_DEVICE constexpr int ChainTeamWarps(int items, int vectors) {
  int warps = kChainWarps;
  while (warps > 1 && (warps * 32 > vectors || items * warps > kChainWarps)) warps /= 2;
  return warps;
}

// Numbers that a stage reads: those of one convolution, (rows, splits, length, channels) sums of
// which each holds a share of its input channels, to be added, normalised and activated; or
// finished ones (1 split, no bias, no norm).
struct ChainSource {
  const float* words = nullptr;  // null: the convolution of x, made in place
  const float* bias = nullptr;
  int splits = 1, channels = 0;
  int item_channels = 0;                                      // that are finished together: a group
  const float *norm_scale = nullptr, *norm_shift = nullptr;   // (channels); null: no norm
  int film_scale = -1, film_bias = -1;                        // of the block's FiLM terms; -1: none
  const float *residual = nullptr, *residual_bias = nullptr;  // words like `words`, added last
  int residual_splits = 1;
  bool first_residual = false;  // the residual is the 1x1 convolution of x
  float* keep = nullptr;        // words (rows, 1, length, channels): where finished ones are kept
};

// One convolution. A block makes m_channels out channels of `rows` rows of a share of the input
// channels; block b is (row set, out channels, share) in this order, the share running fastest.
struct ChainStage {
  FusedConvShape shape;  // rows: of all
  ChainSource source[2];
  const void* weight = nullptr;                       // packed by PackFusedWeights
  float *words = nullptr, *residual_words = nullptr;  // (rows, splits, length, out_c): its sums
  int m_channels = 16, splits = 1, rows = 1;          // of a block
  int share = 0;                                      // of the in channels, of a block
  int n_tiles = 1;                                    // tiles of 8 positions of a block
  FusedLayout layout = {};
  ChainSource own;  // where words are set: its output, which the blocks finish and keep
};

struct ChainArgs {
  const ChainStage* stages = nullptr;  // device memory
  int stage_count = 0, blocks = 0;
  int rows = 0, length = 0, action_dim = 0;
  int all_rows = 0;     // of the noise: other launches take those that this one does not
  int border = 0;       // zeros on either side of a row's x, which no position checks for
  FirstConvArgs first;  // weights alone
  ChainSource last;     // of the final convolution
  const float *head_weight = nullptr, *head_bias = nullptr;  // (action_dim, channels), (action_dim)
  float* head_words = nullptr;                               // (rows, items, length * action_dim)
  FilmArgs film;                                             // tables; row_step is not read
  // step by step, where picard.window is 0
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // (steps, all rows, length * action_dim); null: DDIM
  int begin = 0, end = 0;                 // steps of this launch
  float* x = nullptr;                     // (rows, length * action_dim); in and out
  float* output = nullptr;                // like x: of the network in the last step
  // window > 0: time-parallel, over all its steps; 0 and a state: step by step, each row (one per
  // environment) from the step at which its window gave up
  PicardArgs picard;
  StampList stamps;            // stamp i is the end of pass i - 1; or empty
  uint32_t* passes = nullptr;  // that ever ran on these words
  int* stuck = nullptr;        // becomes 1 where a wait lasted seconds
  int sums_offset = 0;         // of a stage's sums in shared memory, from its input
  bool wide_warps = false;     // a warp multiplies two tiles of 16 channels at once
};

// Shared memory of all rows' x, in bytes: what follows it is read in vectors.
MJP_HOST_DEVICE inline int ChainXBytes(const ChainArgs& a) {
  return (a.rows * (a.length * a.action_dim + 2 * a.border) * 4 + 15) / 16 * 16;
}
// Completes a stage whose shape (rows: of all), sources and weights are set: how its blocks share
// the work. `owned`: the blocks finish its output, rather than each reader what it needs. False
// where the kernel does not run it.
bool PlanChainStage(ChainStage& stage, bool owned);
// Shared memory of a block; sets `sums_offset`.
size_t PlanChainShared(const std::vector<ChainStage>& stages, ChainArgs& args);
// Enqueues the chain, or its steps [begin, end).
void LaunchUnetChain(Format format, const ChainArgs& args, size_t shared_bytes,
                     cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_
