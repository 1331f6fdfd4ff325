#ifndef KERNELS_CUDA_ROW_KERNEL_ROW_KERNEL_CUH_
#define KERNELS_CUDA_ROW_KERNEL_ROW_KERNEL_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/norm/group_norm.cuh"
#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/sampler/timestamp.cuh"
#include "kernels/shared/denoise.h"
#include "kernels/shared/format.h"

// The row kernel: all layers of a U-Net pass, and all steps of a chain, in one launch, with a
// cluster of CTAs for each row, or eight clusters for one. Rows never wait for each other.
// README.md tells the design.

namespace mjp::row_kernel {

// Of each role: warps that multiply, and warps that run epilogues and the sampler's steps.
inline constexpr int kWarps = 8, kRoleThreads = 32 * kWarps, kThreads = 2 * kRoleThreads;
inline constexpr int kMaxPositions = 32;                // of a row, at the full length
inline constexpr int kMaxLanePairs = 4;                 // pairs of values of a lane in a norm group
inline constexpr int kGroupThreads = kRoleThreads / 2;  // of a norm group, across clusters
inline constexpr int kMaxCtas = 8;                      // of a cluster
inline constexpr int kClusters = kMaxCtas;              // of a row across clusters
inline constexpr int kMaxElements = 4 * kRoleThreads;   // of a row's x
inline constexpr int kSumsBarriers = 3;                 // across clusters, of a CTA
inline constexpr int kDeepRing = 6;        // chunks of weights of a warp in shared memory
inline constexpr int kShallowRing = 3;     // likewise, where a CTA has less than kDeepRing needs
inline constexpr int kClustersRing = 8;    // likewise, across clusters
inline constexpr int kPositionTile = 8;    // of a product
inline constexpr int kBlockChannels = 16;  // in channels of a step, out channels of a tile
inline constexpr int kTileBytes = kBlockChannels * kPositionTile * 4;  // of sums

// How a network runs: CTAs of a cluster; chunks of weights of a warp in shared memory; clusters of
// a row, 1 or, of kMaxCtas CTAs each, kClusters.
struct Config {
  int ctas = 1, ring_chunks = kDeepRing;
  int clusters = 1;
};

// Steps of one tile, of a convolution or its shortcut, that a warp multiplies: part `k` of them.
struct Unit {
  int tile = 0, k = 0;
  bool shortcut = false;
};

// One convolution and its epilogue, as each CTA of the cluster runs it. Offsets are bytes of shared
// memory from its begin; an output of a CTA is its slice of the out channels.
struct alignas(16) Layer {
  // Products: `tiles` of 16 out channels, phase by phase; the steps of a tile are shared out to
  // 2^k_log2 warps. A step multiplies the fragment of one tap and 16 in channels; kChunkFragments
  // steps are a chunk.
  int tiles = 0, k_log2 = 0;
  int shortcut_warps_at = 0;                  // the first of warps that have the shortcut alone
  int slices = 1;                             // of the in channels, across clusters: CTAs' parts
  int chunks = 0, shortcut_chunks = 0;        // of a unit
  int chunks_at = 0, shortcut_chunks_at = 0;  // in the table of steps, in chunks
  int row_bytes = 0;                          // from the input of a position to that of the next
  int phase_bytes = 0;                        // from the input of phase 0 to that of phase 1
  int length = 0, n_tiles = 1, phases = 1;    // output positions of a phase, and tiles of them
  int input_bytes = 0;                        // of the output of the layer before
  // Epilogue.
  int channels = 0;                             // of the CTA's slice
  int phase_rows = 0;                           // of the sums from a phase to the next
  int parts_log2 = 0;                           // of the sums: warps', or CTAs' across clusters
  int sums_bytes = 0;                           // of all of them, across clusters
  int group_channels_log2 = 0, pairs_log2 = 0;  // of a norm group; pairs of positions of a channel
  int lane_pairs = 1;                           // of a lane in a group
  int groups = 0, group_pairs = 0;              // of the CTA; pairs of all lanes in one
  float inverse_count = 0;                      // 1 / values of a group
  int part_bytes = 0, shortcut_part_bytes = 0;  // of a warp's partial sums of all tiles
  bool normalizes = false;                      // and activates
  int output = 0, output_pitch = 0;             // of position 0; bytes of a position
  int residual = -1, residual_pitch = 0;        // activations that are added; -1: none
  int shortcut_parts_log2 = -1;         // partial sums of the shortcut that are added; -1: none
  int film_scale = -1, film_bias = -1;  // offsets into a row of FiLM's tables; -1: none
  int terms = 0;                        // of its first channel, among those of all layers

  // The units of warp `warp`; from their end on a tile that does not exist. Of each tile the
  // convolution, then its shortcut, which across clusters has warps of its own where there are any.
  MJP_HOST_DEVICE Unit FirstUnit(int warp) const {
    if (shortcut_warps_at > 0 && warp >= shortcut_warps_at)
      return {warp - shortcut_warps_at, 0, true};
    return {warp >> k_log2, warp & ((1 << k_log2) - 1), false};
  }
  MJP_HOST_DEVICE Unit NextUnit(const Unit& unit) const {
    if (shortcut_warps_at > 0) return {tiles, 0, false};
    if (shortcut_chunks > 0 && !unit.shortcut) return {unit.tile, unit.k, true};
    return {unit.tile + (kWarps >> k_log2), unit.k, false};
  }
  MJP_HOST_DEVICE int Chunks(const Unit& unit) const {
    return unit.shortcut ? shortcut_chunks : chunks;
  }
  // Where the steps of a unit begin in the table.
  MJP_HOST_DEVICE int ChunksAt(const Unit& unit) const {
    return (unit.shortcut ? shortcut_chunks_at : chunks_at) + unit.k * Chunks(unit);
  }

  // Across clusters: where sums of a part stand, of a row of its tiles and a pair of positions. A
  // tile's are stored as mma leaves them in a warp's lanes, four each, or two where half of the
  // positions are beyond the row.
  MJP_HOST_DEVICE int SumsAtOwner(int row, int pair) const {
    const int tile = row / kBlockChannels, lane = row % 8 * 4, half = row / 8 % 2;
    if (length <= kPositionTile / 2) return tile * kTileBytes / 2 + (lane + half * 2 + pair) * 8;
    return (tile * n_tiles + pair / 4) * kTileBytes + (lane + pair % 4) * 16 + half * 8;
  }
};

// Where the terms of a layer's channels come from; null: zeros.
struct TermSource {
  const float *bias = nullptr, *scale = nullptr, *shift = nullptr, *shortcut_bias = nullptr;
  int first = 0, channels = 0;  // among those of all layers
};

// Where things stand in shared memory, in bytes, in this order but for head_sums, which are in the
// place of sums, or across clusters in that of shortcuts. The ring of weights is at 0.
struct SharedLayout {
  int activations = 0, sums = 0, shortcut_sums = 0, steps = 0, layers = 0;
  int head_sums = 0;
  // of a cluster, two, and of the head's sums; behind them whether the MMA warps are done
  int barriers = 0;
  int moments = 0;  // across clusters: of norm groups
  int further = 0;  // x and noise, float32, of elements that are not a thread's first
  int end = 0;
  int sums_turn = 0;  // across clusters: from the sums of a layer to those of the next, in turn
};

// What the kernel reads. A launch is one pass over `rows` rows of given timesteps, or the steps
// [begin, end) of a chain.
struct Args {
  int rows = 0, ctas = 1, clusters = 1;  // CTAs of a cluster; clusters of a row
  int length = 0, action_dim = 0;
  const Layer* layers = nullptr;  // device memory; the last one is the head
  int layer_count = 0;
  const uint16_t* steps = nullptr;  // table of steps: input of a step, 16 bytes each
  int step_count = 0;
  const float4* terms = nullptr;  // of all layers' channels: bias, norm's scale and shift, and bias
                                  // of the shortcut
  const uint8_t* weights = nullptr;  // streams of all warps of the cluster's CTAs
  const int2* ranges = nullptr;  // (clusters, ctas, warps): first fragment and fragments of each
  const float* head_bias = nullptr;  // (action_dim)
  SharedLayout shared;
  int ring_chunks = kDeepRing;
  int input = 0, input_pitch = 0;  // of x in shared memory: position 0, bytes of a position
  FilmTables film;
  // Across clusters, device memory of this launch and those after it, zeros at first:
  uint2* mailboxes = nullptr;     // (2, kClusters, mailbox_pairs)
  uint32_t* exchanges = nullptr;  // that ever ran
  int mailbox_pairs = 0;
  int* timed_out = nullptr;  // becomes 1 where a wait lasted seconds: what it made is worthless
  // A pass:
  const void* x_storage = nullptr;  // (rows, length, storage_pitch); null: a chain
  int storage_pitch = 0;
  const int* row_step = nullptr;  // (rows)
  float* output = nullptr;        // (rows, length * action_dim)
  // A chain:
  const DenoiseStep* schedule = nullptr;  // (steps)
  const float* noise = nullptr;           // (steps, rows, length * action_dim); null: DDIM
  float* x = nullptr;                     // (rows, length * action_dim); in and out
  int begin = 0, end = 1;
  TimestampSpan timestamps;  // entry i: the end of step begin + i; or empty
};

// Where the 512 bytes of a fragment (16 out channels x 16 in channels) come from: a fragment of
// PackWeightFragments (o_stride 0), float32 values at from[o * o_stride + i * i_stride], zeros
// beyond the counts; or null: zeros.
struct FragmentSource {
  const void* from = nullptr;
  int o_stride = 0, i_stride = 0;
  int o_count = 0, i_count = 0;
  int half = -1;  // 0 or 1: eight of a packed fragment's out channels, then zeros; -1: all 16
};

// Brings the terms of `count` layers together; `sources` is device memory. On the default stream.
void LaunchGatherTerms(const TermSource* sources, int count, float4* terms);
// Copies `count` fragments into `weights`; `sources` is device memory. On the default stream.
void LaunchGatherFragments(Format format, const FragmentSource* sources, int count, void* weights);
// Enqueues a pass or a chain. Throws Error; Unsupported where the format is not fp16 or bf16.
void LaunchRowKernel(Format format, const Args& args, cudaStream_t stream);
// The same of one row by kClusters clusters, which run at once.
void LaunchRowKernelAcrossClusters(Format format, const Args& args, cudaStream_t stream);

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_ROW_KERNEL_CUH_
