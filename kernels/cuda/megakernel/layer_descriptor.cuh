#ifndef KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_
#define KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_

#include "kernels/cuda/megakernel/mailbox.cuh"
#include "kernels/cuda/megakernel/megakernel.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// Where the numbers of a stage come from and go to, worked out by a block once per launch, so that
// a thread has but its own place to add between two trips through L2.

namespace mjp {

inline constexpr int kPackBytes = kFusedPack * sizeof(uint16_t);

// Finished numbers, (waves, 2 passes, sets of rows, channels / 8, length, 2^log2 rows of a set, 8):
// bytes between sets and passes.
struct WideSource {
  const uint8_t* from;
  uint32_t set, pass;
  int log2;
};

// The two boxes that a stage's sums use in turn, for each wave.
struct WideTurns {
  int other;  // bytes from one to the next
  int uses, index;
};
// A wave's words of this pass in the boxes, from the first one on, and their parity. Two boxes in
// turn are enough: who sends the sums of a stage has read an input that needed, of the same rows,
// every item of an earlier use of the box; where it reads a skip alone, by the items of the stages
// between.
struct WideTurn {
  int bytes;
  uint32_t parity;
};
__device__ __forceinline__ WideTurn TurnOf(const WideTurns& turns, uint32_t pass, int wave) {
  const uint32_t use = pass * turns.uses + turns.index;
  return {static_cast<int>(2 * wave + (use & 1)) * turns.other, (use >> 1 & 1) ^ 1};
}

// A block's weights in a stage: for each filling of the input, of each warp `bytes`.
struct alignas(16) WideTile {
  const uint8_t* weight;
  int fillings, bytes;
};

struct alignas(16) WideRoute {
  WideTile next;    // of the stage that the block multiplies next
  bool multiplies;  // whether the block has products:
  int first_look;   // cycles from when it has handed on to when it looks for their input
  int channel0, phase;
  // the input, [channels / 8][place][row]; the sources from the team's first row on, the second one
  // as if it went on where the first one ends; with roles the first one is that of channel0
  WideSource source[2];
  int source_channels;     // of source[0]
  int vectors;             // of 8 channels, that fill the input
  int rows_log2, in_log2;  // rows and positions
  int left, zeros_log2;    // zeros: vectors before a place's rows; with those behind them
  int even;                // first place of the even positions; 0: all stand in order
  // the sums that the block makes, in the first boxes, from the team's first row on
  uint8_t *to, *to_beside;
  int out, item_log2;                 // first out channel in the team; channels of a group
  int to_group, to_row, to_position;  // bytes to the next one
  int positions_log2;                 // and rows of a block's products
  WideTurns turns, turns_beside;
  // the item that it finishes
  const uint8_t *from, *from_beside;                  // in the first boxes
  uint8_t* keep;                                      // null: they are the head's
  uint32_t keep_pass;                                 // bytes between passes
  int keep_log2;                                      // rows of a set
  int numbers, length_log2;                           // of an item
  float per_number;                                   // 1 / numbers
  int share;                                          // bytes of a share's sums
  const float *bias, *residual_bias, *scale, *shift;  // of the group's channels; or null
  int film_scale, film_bias;                          // likewise; -1: none
};

// Where a row of finished numbers begins, whose sets are `set` bytes apart.
template <typename Byte>
__device__ __forceinline__ Byte* RowAt(Byte* rows, int row, uint32_t set, int log2) {
  return rows + (row >> log2) * set + (row & ((1 << log2) - 1)) * kPackBytes;
}

__device__ __forceinline__ WideSource MakeWideSource(const WideStage& st, const WideTeam& team,
                                                     int which) {
  const int channels = which ? st.shape.in_c - st.source_channels : st.source_channels;
  WideSource s;
  s.log2 = st.source_log2[which];
  s.set = (channels / kFusedPack * kPackBytes) << (st.in_log2 + s.log2);
  s.pass = channels / kFusedPack * kPackBytes * (kWideSlots << st.in_log2);
  s.from = RowAt(static_cast<const uint8_t*>(st.source[which]), team.row0, s.set, s.log2);
  if (which) s.from -= (st.source_channels / kFusedPack * kPackBytes) << (st.in_log2 + s.log2);
  return s;
}

// T: as numbers are stored.
template <typename T>
__device__ __forceinline__ WideRoute MakeWideRoute(const WideChainArgs& w, const WideStage& st,
                                                   const WideItem& item) {
  const WideTeam team = TeamOf(st, item);
  const int length = 1 << st.in_log2;
  constexpr int kWordBytes = sizeof(float);
  const int channel0 = item.group << st.item_log2;
  const auto at = [&](const float* p) { return p ? p + channel0 : nullptr; };
  const auto turns = [&](const WideBox& box) {
    return WideTurns{kWideBlocks * box.words * kWordBytes, box.uses, box.index};
  };
  WideRoute r = {};
  r.multiplies = st.shape.in_c > 0 && team.multiplies;
  // who looks too soon asks twice, which the more rows delay the others the more: measured
  r.first_look = 125 + (50 << st.rows_log2);
  r.channel0 = team.split * st.share, r.phase = team.phase;
  for (int i = 0; i < 2; ++i) r.source[i] = MakeWideSource(st, team, i);
  r.source_channels = st.source_channels;
  if (w.roles && r.channel0 >= r.source_channels) r.source[0] = r.source[1];
  r.rows_log2 = st.rows_log2, r.in_log2 = st.in_log2;
  r.vectors = ((st.whole ? kWholeChannels : kWideFilling) / kFusedPack)
              << (st.rows_log2 + st.in_log2);
  r.left = st.left << st.rows_log2, r.zeros_log2 = Log2(st.places - length) + st.rows_log2;
  r.even = st.shape.stride == 2 ? length / 2 + 1 : 0;

  r.item_log2 = st.item_log2;
  r.length_log2 = st.out_log2 + st.shape.phases - 1;
  r.numbers = 1 << (st.item_log2 + r.length_log2);
  r.per_number = 1.0f / r.numbers;
  // an item's box has room for float32 sums
  constexpr int number = kSumsAre16<T> ? sizeof(__half) : sizeof(float);
  const int box = st.sums.words * kWordBytes;  // bytes of an item's
  r.share = number * r.numbers;
  r.to_group = kWideSlots * box, r.to_row = box;
  r.to_position = number * st.shape.phases << st.item_log2;
  r.out = team.out, r.positions_log2 = st.rows_log2 + st.out_log2;
  const int group = team.tile << st.groups_log2;
  const int to = (group * kWideSlots + team.row0) * box + team.split * r.share +
                 (number * team.phase << st.item_log2);
  const int from = static_cast<int>(blockIdx.x) * box;
  const auto in = [&](const WideBox& b) { return reinterpret_cast<uint8_t*>(w.boxes + b.offset); };
  r.to = in(st.sums) + to, r.to_beside = in(st.beside) + to;
  r.from = in(st.sums) + from, r.from_beside = in(st.beside) + from;
  r.turns = turns(st.sums), r.turns_beside = turns(st.beside);

  const uint32_t set = (st.own.channels / kFusedPack * kPackBytes)
                       << (r.length_log2 + st.keep_log2);
  r.keep_log2 = st.keep_log2;
  r.keep_pass = (st.own.channels / kFusedPack * kPackBytes * kWideSlots) << r.length_log2;
  if (st.keep)
    r.keep = RowAt(static_cast<uint8_t*>(st.keep), item.slot, set, st.keep_log2) +
             ((channel0 / kFusedPack * kPackBytes) << (r.length_log2 + st.keep_log2));
  r.bias = at(st.own.bias), r.residual_bias = at(st.own.residual_bias);
  r.scale = at(st.own.norm_scale), r.shift = at(st.own.norm_shift);
  r.film_scale = st.own.film_scale < 0 ? -1 : st.own.film_scale + channel0;
  r.film_bias = st.own.film_bias < 0 ? -1 : st.own.film_bias + channel0;
  return r;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_LAYER_DESCRIPTOR_CUH_
