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

// Arguments of the persistent kernels: one CTA per multiprocessor stays through all layers and
// passes. CTAs exchange values through L2 without barriers and without flags: a value carries the
// epoch that wrote it, and a consumer polls the value itself until its epoch matches (as NCCL's LL
// protocol does; tagged_value.cuh, mailbox.cuh).

namespace mjp::megakernel {

inline constexpr int kMmaWarps = 8, kMmaThreads = 32 * kMmaWarps;
inline constexpr int kReaderMaxCtas = 128;  // one per multiprocessor of every H100 SXM and H200
inline constexpr int kMaxPartialSums = 8;   // that a reader adds up for a value
// Chunks of weights in each warp's ring, where a warp multiplies `mi` tiles of 16 channels at once.
MJP_HOST_DEVICE constexpr int RingChunks(int mi) { return mi == 1 ? 8 : 6; }
// Values of an output tile that a reader's CTA can normalise, where owners do not.
inline constexpr int kReaderMaxTileValues = kMmaWarps * 32 * 4;
// Vectors of four channels that a thread normalises, as a reader and as an owner (whose tile has
// the whole CTA); and the warps that share a tile's `vectors` where a CTA has `tiles` at once.
inline constexpr int kReaderMaxVectors = 4, kOwnerMaxVectors = 2;
MJP_HOST_DEVICE constexpr int WarpsPerTile(int tiles, int vectors) {
  int warps = kMmaWarps;
  while (warps > 1 && (warps * 32 > vectors || tiles * warps > kMmaWarps)) warps /= 2;
  return warps;
}

// What an epilogue reads: the partial sums of one convolution (rows, split_k, length, channels), to
// be added up, normalised and activated; or materialised activations (1 slice, no bias, no norm).
struct EpilogueSource {
  const float* values = nullptr;  // tagged; null: the first convolution, of x
  const float* bias = nullptr;
  int split_k = 1, channels = 0;
  int group_channels = 0;                                    // that are normalised together
  const float *norm_scale = nullptr, *norm_shift = nullptr;  // (channels); null: no norm
  int film_scale = -1, film_bias = -1;  // offsets into a row of FiLM's tables; -1: none
  const float *residual = nullptr, *shortcut_bias = nullptr;  // tagged like `values`, added last
  int residual_split_k = 1;
  bool shortcut_of_x = false;     // the residual is the 1x1 convolution of x
  float* materialized = nullptr;  // tagged (rows, 1, length, channels): where the result is stored
};

// One layer of the reader-epilogue kernel. A CTA makes m_channels out channels of `rows` rows over
// one K slice; CTA b is (row set, out channels, K slice) in this order, the slice running fastest.
struct ReaderLayer {
  NormConvShape shape;  // rows: of all
  EpilogueSource source[2];
  const void* weight = nullptr;  // packed by PackWeightFragments
  float *partial_sums = nullptr,
        *shortcut_partial_sums = nullptr;      // (rows, split_k, length, out_c)
  int m_channels = 16, split_k = 1, rows = 1;  // of a CTA
  int k_slice = 0;                             // in channels of a CTA
  int n_tiles = 1;                             // of 8 positions of a CTA
  InputLayout layout = {};
  EpilogueSource own;  // with values: an owner epilogue follows, and materialises the output
};

// The weights of the first convolution and of its 1x1 shortcut, as in mjp::FirstConvArgs.
struct FirstConvWeights {
  int taps = 0, in_c = 0, out_c = 0;
  const float *weight = nullptr, *shortcut_weight = nullptr;
};

// The 1x1 convolution to the actions: (action_dim, channels), (action_dim).
struct HeadWeights {
  const float *weight = nullptr, *bias = nullptr;
};

// What both persistent kernels read.
struct CommonArgs {
  int rows = 0, length = 0, action_dim = 0;
  int all_rows = 0;  // of the noise: other launches take those that this one does not
  int x_halo = 0;    // zeros on either side of a row's x: positions need no bounds check
  FirstConvWeights first;
  EpilogueSource last;  // of the final convolution; the megakernel reads its channels alone
  HeadWeights head;
  float* head_partial_sums = nullptr;  // tagged (rows, norm groups, length * action_dim)
  FilmTables film;
  // step by step, where picard.window is 0
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // (steps, all rows, length * action_dim); null: DDIM
  int begin = 0, end = 0;                 // steps of this launch
  float* x = nullptr;                     // (rows, length * action_dim); in and out
  float* output = nullptr;                // like x: of the network in the last step
  // window > 0: time-parallel, over all its steps; 0 and a state: step by step, each row (one per
  // environment) from the step at which its window was abandoned
  PicardSweepArgs picard;
  TimestampSpan timestamps;        // i is the end of pass i - 1; or empty
  uint32_t* pass_count = nullptr;  // passes that ever ran on these buffers: the epochs go on
  int* timed_out = nullptr;        // becomes 1 where a poll lasted seconds
};

// What the reader-epilogue kernel reads.
struct ReaderArgs {
  CommonArgs common;
  const ReaderLayer* layers = nullptr;  // device memory
  int layer_count = 0;
  int accumulator_offset = 0;       // of the accumulators in shared memory, from the input
  bool two_tiles_per_warp = false;  // of 16 out channels
};

// Shared memory of all rows' x, in bytes: what follows it is read in vectors.
MJP_HOST_DEVICE inline int XBytes(const CommonArgs& a) {
  return (a.rows * (a.length * a.action_dim + 2 * a.x_halo) * 4 + 15) / 16 * 16;
}
// Completes a layer whose shape (rows: of all), sources and weights are set: how the CTAs split it.
// `owner_epilogue`: the CTAs normalise its output once, rather than each reader what it needs.
// False where the kernel cannot run it.
bool PlanReaderLayer(ReaderLayer& layer, bool owner_epilogue);
// Shared memory of a CTA in bytes; sets `accumulator_offset`.
size_t PlanReaderShared(const std::vector<ReaderLayer>& layers, ReaderArgs& args);
// Enqueues the steps [begin, end), or the windows, on `ctas` CTAs. Throws like LaunchMegakernel.
void LaunchReaderMegakernel(Format format, const ReaderArgs& args, int ctas, size_t shared_bytes,
                            cudaStream_t stream);

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_ARGS_CUH_
