#ifndef KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/target.h"

// The persistent U-Net megakernel: all denoising steps and all layers of up to 32 rows in one
// cooperative launch of 128 CTAs. README.md tells the design; in short:
//
// * Output tiles. Every layer's output is 16 rows x 8 norm groups of output tiles: one for each
//   CTA, its owner, which runs the epilogue (GroupNorm, Mish, FiLM, residual) and keeps the tile in
//   registers or shared memory as the residual of a later layer.
// * Split-K. The GEMM of a layer is split over a group of CTAs: each computes a tile of 64 out
//   channels x some rows over one K slice, and sends its partial sums to the CTAs that own those
//   output tiles. So a layer is two exchanges through L2: activations to the CTAs that multiply
//   them, partial sums to the owners.
// * CTA-local layers. Where the full K of a CTA's own output tile needs no more weight bytes than
//   its K slice would, K is not split: one exchange is left.
// * Row batches. Rows beyond 16 are a second batch: a CTA takes both through a layer, one after the
//   other with the same weights (ping-pong): one is multiplied while the other is exchanged.

namespace mjp::megakernel {

inline constexpr int kMaxRowBatches = 2;
inline constexpr int kMaxRows = kRowsPerBatch * kMaxRowBatches;
// Warp specialisation: 8 MMA warps (two warpgroups) and 4 epilogue warps, where output tiles have
// at most 512 values in every layer and a CTA's K slice is one K block. Otherwise 8 warps do both,
// and there is one row batch.
inline constexpr int kEpilogueThreads = 128;
inline constexpr int kSpecializedThreads = kMmaThreads + kEpilogueThreads;
inline constexpr int kTileChannels = 64;      // out channels of a CTA's GEMM tile
inline constexpr int kMaxSplitK = 16;         // K slices
inline constexpr int kKSteps = 4;             // of 32 in channels, 16 for each warpgroup
inline constexpr int kBlockK = 32 * kKSteps;  // in channels in shared memory at once
inline constexpr int kWarpWeightBytes =       // of a K block: 5 taps and the shortcut
    kKSteps * 6 * kFragmentBytes;
// The GEMM tile of a CTA-local layer: out channels, and in channels, in two halves.
inline constexpr int kLocalTileChannels = kTileChannels / 2, kLocalBlockK = 2 * kBlockK;
inline constexpr int kAccumulatorPitch = kTileChannels + 4;  // float32 values of a column
inline constexpr int kLocalPart = 16 * kAccumulatorPitch;    // values of a warpgroup
inline constexpr int kLocalAccumulatorBytes = 2 * kLocalPart * sizeof(float);  // of a row batch

// Where the partial sums of a layer go: a mailbox of `tile_values` values for each output tile,
// double-buffered, for each row batch. Layers whose mailboxes have one size use the same two
// buffers in turn; the lowest bit of the first of four values is the epoch of the use that wrote
// them.
struct Mailbox {
  uint32_t offset = 0;      // of the first buffer, float32 values
  int tile_values = 0;      // K slices x values of an output tile
  int uses = 1, index = 0;  // of these buffers in a pass; this layer's
};

// One layer: a convolution, its norm, activation, FiLM and residual. Its size is a power of two, so
// that an index is a shift.
struct alignas(128) Layer {
  NormConvShape shape;           // in_c 0: the first convolution, made by the epilogue from x
  const void* weight = nullptr;  // as LaunchReorderWeights leaves it
  // activations: (row batches, 2 buffers, row sets, channels / 8, length, 2^source_row_set_log2
  // rows of a set, 8); a row set is the rows of one CTA group of the layer that reads it first
  const void* source[2] = {};
  int source_row_set_log2[2] = {};
  int source_channels = 0;  // of source[0]
  EpilogueTerms epilogue;
  void* output = nullptr;  // activations, like a source; null: the last layer, which the head reads
  int output_row_set_log2 = -1;
  bool adds_residual = false;         // and the output is the next residual
  bool cta_local = false;             // K is not split: the owner of a tile multiplies it
  bool fence = false;                 // clears made so far become visible before the output does
  Mailbox mailbox, shortcut_mailbox;  // of the convolution, and of the 1x1 shortcut
  int k_slice = 0;                    // in channels of a CTA
  int split_k_log2 = 0, m_tiles_log2 = 0;       // a CTA group: K slices x tiles of out channels
  int groups_log2 = 0, rows_log2 = 0;           // its output tiles: norm groups x rows
  int in_length_log2 = 0, out_length_log2 = 0;  // positions; out: of one phase
  int group_channels_log2 = 0;
  int halo = 0, padded_length = 0;  // zeros before a row's input; positions with all zeros
};

static_assert(sizeof(Layer) == 256);

// What the kernel reads.
struct Args {
  CommonArgs common;
  const Layer* layers = nullptr;  // device memory
  int layer_count = 0;
  float* mailboxes = nullptr;
  int accumulator_offset = 0;  // of SharedSpace
  int local_offset = 0;        // likewise
  int row_batches = 1;
  bool warp_specialized = false;
};

// The output tile that a CTA owns in every layer, of each row batch.
struct OutputTile {
  int row_slot, group;  // row of the batch; norm group
};
MJP_HOST_DEVICE inline OutputTile TileOfCta(int cta) {
  return {cta % kRowsPerBatch, cta / kRowsPerBatch};
}

// A CTA's part of a layer's GEMM.
struct GemmTile {
  int row0, group_block;  // of its CTA group: first row of a batch; which one along the norm groups
  int k_slice, phase, out;  // the K slice; phase; first out channel within the CTA group
  bool has_work;            // a CTA group may have more CTAs than tiles
};
MJP_HOST_DEVICE inline GemmTile GemmTileOf(const Layer& layer, const OutputTile& tile) {
  const int rows = 1 << layer.rows_log2;
  const int tiles_log2 = layer.m_tiles_log2 - (layer.shape.phases - 1);
  const int group = tile.group & ((1 << layer.groups_log2) - 1);
  const int member = (group << layer.rows_log2) + (tile.row_slot & (rows - 1));
  const int m_tile = member >> layer.split_k_log2;
  return {tile.row_slot & ~(rows - 1),
          tile.group >> layer.groups_log2,
          member & ((1 << layer.split_k_log2) - 1),
          m_tile >> tiles_log2,
          (m_tile & ((1 << tiles_log2) - 1)) * kTileChannels,
          m_tile < 1 << layer.m_tiles_log2};
}

// Completes a layer whose shape, epilogue and sources are set: takes the fewest K slices with which
// a CTA's weights are small, or else the most that work. False where the kernel cannot run it.
bool PlanLayer(Layer& layer);
// Whether the planned layers can run with MMA warps and epilogue warps.
bool CanSpecializeWarps(const std::vector<Layer>& layers);
// Makes planned layers of warp-specialised CTAs CTA-local, where that needs no more weight bytes.
void PlanCtaLocal(std::vector<Layer>& layers);
// Whether CTA groups of a layer span all rows of a batch.
bool SpansAllRows(const Layer& layer);
// Where no layer's CTA groups span all rows of a batch, makes those of one layer do: its CTAs
// multiply more columns, and those left without a tile wait like the others.
void SpanAllRowsOnce(std::vector<Layer>& layers);
// Whether no CTA can run more than one pass ahead of another, which 1-bit epochs rely on: the CTA
// groups of some layer span all 16 rows of a batch, so that every CTA waits for all others in every
// pass, those of unused rows too.
bool SkewIsBounded(const std::vector<Layer>& layers);
// Whether every CTA has a GEMM tile in some layer: its weight pipeline goes round them, and the
// search for the next one (NextWeightTile) would not end otherwise.
bool EveryCtaMultiplies(const std::vector<Layer>& layers);
// The layer, in the same pass, that used the buffers of a layer's mailbox before the last one that
// did; -1: none.
int UseBeforeLast(const std::vector<Layer>& layers, Mailbox Layer::*mailbox, int layer);
// Whether a mailbox' two buffers suffice: no sender overwrites partial sums that their owner has
// not received. A sender has consumed the layer before, of the same rows, whose owners are past the
// layer before that; so use n - 2 of the buffers is received before use n. For a sender whose K
// slice is of a skip alone it must follow from its own tile: the last layer before whose CTA groups
// span its rows tells that these owners are past the layer before that one.
bool TwoMailboxBuffersSuffice(const std::vector<Layer>& layers);
// Sets `fence` in the layer before the last one whose CTA groups span all rows. An owner clears, a
// pass ahead, the buffer that it writes in the next pass; a reader that polled there before the
// clear is visible would take the activations of the pass before last. One fence in a pass is
// enough: every CTA waits, through that last layer, for the outputs of the layer before of all
// others, and this once between any clear and the next poll of what was cleared. Before the last
// such layer, since the epilogue warps have time there. The skew must be bounded.
void PlaceFence(std::vector<Layer>& layers);
// Shared memory of a CTA in bytes, and the offsets of the accumulators from the input: behind it
// with warp specialisation, and where both fit into `room` bytes; otherwise in its place. Those of
// CTA-local layers, of each row batch, stand at the end of that space.
struct SharedSpace {
  size_t bytes;
  int accumulator_offset, local_offset;
};
SharedSpace PlanSharedSpace(const std::vector<Layer>& layers, const Args& args, Format format,
                            size_t room);
// Brings 16-bit weights packed by PackWeightFragments into the order in which warps read them, by
// fragments: (phases x out / 64, in / 128, 8 warps: 2 halves of each 32 in x 4 parts of out, 4 x 32
// in, taps), where each warp's 4 of the shortcut follow its taps. CTA-local: (out / 32, 8 warps: 2
// halves of each 32 in x 2 halves of in x 2 parts of out, 4 x 32 in, taps). On the default stream.
void LaunchReorderWeights(const NormConvShape& shape, bool cta_local, const void* packed,
                          void* ordered);
// Enqueues the steps [begin, end), or the windows. Throws Error; Unsupported where the
// format is not fp16 or bf16.
void LaunchMegakernel(Format format, const Args& args, size_t shared_bytes, cudaStream_t stream);

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_
