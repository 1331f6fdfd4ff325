#ifndef KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_
#define KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_

#include "kernels/cuda/megakernel/args.cuh"

// The persistent chain of up to 32 rows. Every layer's output is (16 rows x 8 groups of channels)
// items: one for each of 128 blocks. The block normalises and activates it and keeps it in
// registers for its residual. Rows beyond 16 are a second wave: a block takes both through a layer,
// one after the other with the same weights, so that one is multiplied while the other is on its
// way; they share nothing else. The products are shared otherwise: a team of blocks makes the
// convolution of a few groups of a few rows, each block 64 of its out channels from a share of the
// in channels, and sends its sums to the blocks whose items they are. So a layer is two trips
// through L2: the finished activations that a team's products need, and the sums that an item
// needs. Where a block's weights are those of all in channels of its own item, as many bytes, it
// makes the item whole, which takes one trip.

namespace mjp {

inline constexpr int kWideSlots = 16;  // rows of a wave
inline constexpr int kWideMaxWaves = 2, kWideRows = kWideSlots * kWideMaxWaves;
inline constexpr int kWideGroups = 8, kWideBlocks = kWideSlots * kWideGroups;
// Where items have at most 512 numbers in every stage, and a block's input is filled once, two
// warpgroups multiply and one behind them finishes, each while the other waits; otherwise two
// warpgroups do both, and there is one wave.
inline constexpr int kWideFinishers = 128, kWideThreads = kChainThreads + kWideFinishers;
inline constexpr int kWideTile = 64;       // out channels of a block's products
inline constexpr int kWideMaxSplits = 16;  // shares of the in channels
inline constexpr int kWidePieces = 4;      // of 32 in channels, that fill the input
inline constexpr int kWideFilling = 32 * kWidePieces;
inline constexpr int kWideWarpBytes =
    kWidePieces * 6 * kFragmentBytes;  // weights: 5 taps and a 1x1
// An item that is made whole: its channels and the in channels, in two halves.
inline constexpr int kWholeTile = kWideTile / 2, kWholeChannels = 2 * kWideFilling;
inline constexpr int kWideSumsPitch = kWideTile + 4;    // of float32
inline constexpr int kWholePart = 16 * kWideSumsPitch;  // of a warpgroup's sums, numbers
inline constexpr int kWholeBytes = 2 * kWholePart * sizeof(float);  // of a wave's

// Where the sums of a stage go: `words` numbers for each item, of two such boxes in turn, which all
// stages with as many use, behind each other for each wave; a word's parity says which of its uses
// wrote it.
struct WideBox {
  uint32_t offset = 0;      // words before it
  int words = 0;            // shares x numbers of an item
  int uses = 1, index = 0;  // of a pass; this one
};

// One convolution, its norm, activation, FiLM and residual.
struct alignas(16) WideStage {
  FusedConvShape shape;          // in_c 0: the first convolution, of x, made in place
  const void* weight = nullptr;  // as LaunchWidePack leaves it
  // finished: (waves, 2 passes, sets of rows, channels / 8, length, 2^source_log2 rows of a set, 8)
  const void* source[2] = {};
  int source_log2[2] = {};
  int source_channels = 0;  // of source[0]
  ChainSource own;          // terms of the output
  void* keep = nullptr;     // the output, like a source; null: it is the head's
  int keep_log2 = -1;
  bool add = false;                     // the residual is added, and the output is the next one's
  bool whole = false;                   // a block makes the products of its own item
  bool fence = false;                   // what a block cleared is seen before its output
  WideBox sums, beside;                 // of the convolution, and of the 1x1 beside it
  int share = 0;                        // in channels of a block
  int splits_log2 = 0, parts_log2 = 0;  // blocks of a team: shares of the in channels x out tiles
  int groups_log2 = 0, rows_log2 = 0;   // items of a team: groups x rows
  int in_log2 = 0, out_log2 = 0;        // positions; of one phase
  int item_log2 = 0;                    // channels of a group
  int left = 0, places = 0;             // of a row's input: positions with the zeros around them
};

struct WideChainArgs {
  Format format = Format::kFp16;      // in which numbers are stored
  ChainArgs chain;                    // its stages are not used
  const WideStage* stages = nullptr;  // device memory
  int stage_count = 0;
  float* boxes = nullptr;  // words
  int sums_offset = 0;     // of WideSpace
  int whole_offset = 0;    // likewise
  int waves = 1;
  bool roles = false;  // whether threads multiply or finish
};

// The item that a block finishes in every stage, of each wave.
struct WideItem {
  int slot, group;
};
MJP_HOST_DEVICE inline WideItem ItemOfBlock(int block) {
  return {block % kWideSlots, block / kWideSlots};
}

// What a block does in a stage's products.
struct WideTeam {
  int row0, tile;         // of the team: its first row of a wave; its groups, counted in teams
  int split, phase, out;  // of the block: its share; its phase; its first out channel in the team
  bool multiplies;        // teams may have more blocks than work
};
MJP_HOST_DEVICE inline WideTeam TeamOf(const WideStage& s, const WideItem& item) {
  const int slots = 1 << s.rows_log2;
  const int tiles_log2 = s.parts_log2 - (s.shape.phases - 1);
  const int group = item.group & ((1 << s.groups_log2) - 1);
  const int member = (group << s.rows_log2) + (item.slot & (slots - 1));
  const int part = member >> s.splits_log2;
  return {item.slot & ~(slots - 1),
          item.group >> s.groups_log2,
          member & ((1 << s.splits_log2) - 1),
          part >> tiles_log2,
          (part & ((1 << tiles_log2) - 1)) * kWideTile,
          part < 1 << s.parts_log2};
}

// Whether threads have roles: in the planned stages items are small enough for those that finish,
// and a block's input is filled once.
bool HaveRoles(const std::vector<WideStage>& stages);
// Has the planned stages, of threads with roles, made whole where a block's weights stay as many.
void PlanWhole(std::vector<WideStage>& stages);
// Completes a stage whose shape, own and sources are set. False where the kernel does not run it.
bool PlanWideStage(WideStage& stage);
// Whether the planned stages keep all blocks together: each has products in some stage, since its
// stream of weights goes round them and would not end otherwise; and a team has the rows of all
// slots, so that in every pass each block waits for all others, those of rows that are not used
// too.
bool KeepBlocksTogether(const std::vector<WideStage>& stages);
// Sets `fence` in the stage before the last one whose teams have the rows of all slots, where
// blocks keep together. Every block needs, by way of that one, all others' outputs of the stage
// before: once a pass, between a clearing and the next reading of what was cleared. The last one,
// since there the threads that finish have time for a fence.
void PlaceFence(std::vector<WideStage>& stages);
// Shared memory of a block, in bytes, and where its products' sums stand behind its input: there
// with roles, and if both fit into `room` bytes; otherwise in the input's place. Those of items
// made whole, of each wave, stand at the end of that place.
struct WideSpace {
  size_t bytes;
  int sums_offset, whole_offset;
};
WideSpace PlanWideSpace(const std::vector<WideStage>& stages, const WideChainArgs& args,
                        size_t room);
// Brings 16-bit weights packed by PackFusedWeights into the order in which warps read them, by
// fragments: (phases x out / 64, in / 128, 8 warps: 2 halves of each 32 in x 4 parts of out, 4 x 32
// in, taps), where each warp's 4 of the 1x1 follow its taps. Whole: (out / 32, 8 warps: 2 halves of
// each 32 in x 2 halves of in x 2 parts of out, 4 x 32 in, taps). On the default stream.
void LaunchWidePack(const FusedConvShape& shape, bool whole, const void* packed, void* ordered);
// Enqueues the chain, or its steps [begin, end).
void LaunchWideChain(const WideChainArgs& args, size_t shared_bytes, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_MEGAKERNEL_CUH_
