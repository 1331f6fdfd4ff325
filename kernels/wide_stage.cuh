#ifndef KERNELS_WIDE_STAGE_CUH_
#define KERNELS_WIDE_STAGE_CUH_

#include "kernels/chain_stage.cuh"
#include "kernels/fused_multiply.cuh"
#include "kernels/wgmma.cuh"
#include "kernels/wide_finish.cuh"

// One convolution of the wide chain: collect the input, multiply, send the sums, finish an item.

namespace dp {

inline constexpr int kPackBytes = kFusedPack * sizeof(uint16_t);

// A warp's weights in a stage: 16 out channels, `slots` times 32 in channels.
struct alignas(16) WideTile {
  const uint8_t* weight;
  int slots, bytes;  // bytes: of a slot
};

// Two groups of four warps share a block's in channels.
__device__ __forceinline__ WideTile MakeWideTile(const WideStage& st, const WideItem& item,
                                                 int warp) {
  const FusedConvShape& s = st.shape;
  const WideTeam team = TeamOf(st, item);
  if (s.in_c == 0 || !team.multiplies) return {nullptr, 0, 0};
  const int out = team.phase * s.out_c + ((team.tile << st.groups_log2) << st.item_log2) +
                  team.out + warp % 4 * 16;
  const int blocks = st.share / 32, bytes = (s.taps + s.residual) * kFragmentBytes;
  const size_t block =
      static_cast<size_t>(out / 16) * (s.in_c / 16) + (team.split * 2 + warp / 4) * blocks;
  return {static_cast<const uint8_t*>(st.weight) + block * bytes, blocks / kWideSlotBlocks,
          bytes * kWideSlotBlocks};
}

// What a lane has of a slot's weights; the last ones are others' where there are fewer taps.
struct WideSlot {
  static constexpr int kFragments = kWideSlotBytes / kFragmentBytes;
  uint32_t v[kFragments][4];
};

// This warp's weights of all stages, round and round, by the bulk copy engine, which leaves the
// threads free for what they wait for.
struct WideStream {
  const WideTile* tiles;  // shared: of the stages, kChainWarps apart
  int stage_count, lane;
  uint32_t ring, arrived;  // shared: slots, and a barrier for each
  uint64_t policy;         // of the L2 cache: weights are not to drive out what blocks hand over
  int stage = -1, left = 0, bytes = 0, slot = 0, read_slot = 0;
  uint32_t parity = 0;  // of what read_slot waits for
  const uint8_t* from = nullptr;

  __device__ __forceinline__ void Init() const {
    if (lane == 0)
      for (int i = 0; i < kWideSlots; ++i) InitBarrier(arrived + i * 8, 1);
    FenceForWgmma();
    __syncwarp();
  }
  // The next slot, once it is full; asks for another one.
  __device__ __forceinline__ WideSlot Take() {
    Issue();
    const uint32_t at = Read() + lane * 16;
    WideSlot slot;
#pragma unroll
    for (int i = 0; i < WideSlot::kFragments; ++i) LoadFragment(slot.v[i], at + i * kFragmentBytes);
    return slot;
  }
  __device__ __forceinline__ uint32_t Read() {
    while (!BarrierPassed(arrived + read_slot * 8, parity)) {
    }
    const uint32_t at = ring + read_slot * kWideSlotBytes;
    if (++read_slot == kWideSlots) read_slot = 0, parity ^= 1;
    return at;
  }
  // Asks for what comes next; all lanes have read what was in its slot, the one read last. So
  // weights travel while others are multiplied, rather than while sums and activations do.
  __device__ __forceinline__ void Issue() {
    while (left == 0) {
      if (++stage == stage_count) stage = 0;
      const WideTile& tile = tiles[stage * kChainWarps];
      from = tile.weight, left = tile.slots, bytes = tile.bytes;
    }
    __syncwarp();
    if (lane == 0) CopyBulk(ring + slot * kWideSlotBytes, from, bytes, arrived + slot * 8, policy);
    from += bytes;
    --left;
    if (++slot == kWideSlots) slot = 0;
  }
};

// Where a position of the input stands among a row's places: with stride 2 the odd ones first.
__device__ __forceinline__ int PlaceOf(const WideStage& st, int position) {
  if (st.shape.stride == 1) return position + st.left;
  return (position & 1 ? 0 : (1 << st.in_log2) / 2 + 1) + (position + 1) / 2;
}

// Eight channels of a place of a row of the input, [channels / 8][place][row].
__device__ __forceinline__ uint4* InputAt(uint8_t* input, const WideStage& st, int pack, int place,
                                          int row) {
  const int at = ((pack * st.places + place) << st.rows_log2) + row;
  return reinterpret_cast<uint4*>(input + at * kPackBytes);
}

// Zeros around each row: a power of two of places.
__device__ __forceinline__ void ClearBorders(const WideStage& st, uint8_t* input) {
  const int length = 1 << st.in_log2, borders_log2 = Log2(st.places - length);
  const int count = (st.share / kFusedPack) << (borders_log2 + st.rows_log2);
  for (int i = threadIdx.x; i < count; i += kChainThreads) {
    const int unit = i >> st.rows_log2, border = unit & ((1 << borders_log2) - 1);
    const int place = border < st.left ? border : border + length;
    *InputAt(input, st, unit >> borders_log2, place, i & ((1 << st.rows_log2) - 1)) =
        make_uint4(0, 0, 0, 0);
  }
}

// Fills the input with the block's share of the in channels of the team's rows.
__device__ __forceinline__ void CollectInput(ChainBlock& b, const WideStage& st,
                                             const WideTeam& team, uint8_t* input) {
  constexpr int kAtOnce = 4;
  const int rows_log2 = st.rows_log2, rows = 1 << rows_log2, in_log2 = st.in_log2;
  const int packs = st.share / kFusedPack, channel0 = team.split * st.share;
  const bool second = channel0 >= st.source_channels;
  const int source_packs =
      (second ? st.shape.in_c - st.source_channels : st.source_channels) / kFusedPack;
  const int pack0 = (channel0 - (second ? st.source_channels : 0)) / kFusedPack;
  const auto* source = static_cast<const uint8_t*>(st.source[second]);
  const int count = packs << (rows_log2 + in_log2);
  constexpr int kStride = kChainThreads * kAtOnce;
  for (int base = threadIdx.x; base < kChainThreads || base < count; base += kStride) {
    uint4 w[kAtOnce];
    const uint8_t* from[kAtOnce];
    uint4* to[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = base + k * kChainThreads, row = i & (rows - 1), unit = i >> rows_log2;
      const int position = unit & ((1 << in_log2) - 1), pack = unit >> in_log2;
      from[k] = source + FinishedAt(b.parity, team.row0 + row, pack0 + pack, source_packs, in_log2,
                                    position);
      if (i < count) w[k] = LoadFinished(from[k]);
      to[k] = InputAt(input, st, pack, PlaceOf(st, position), row);
    }
    if (base < kChainThreads) ClearBorders(st, input);
    for (int tries = 0;; ++tries) {
      bool missing = false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (base + k * kChainThreads < count && !IsFinished(w[k])) {
          missing = true;
          w[k] = LoadFinished(from[k]);
        }
      }
      if (!missing || b.watch.GivesUp(tries)) break;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (base + k * kChainThreads < count) *to[k] = make_uint4(~w[k].x, ~w[k].y, ~w[k].z, ~w[k].w);
  }
}

// Adds the two groups' sums and sends them to the blocks whose items they are.
__device__ __forceinline__ void SendSums(const WideStage& st, const WideTeam& team,
                                         const float* sums, int n_tiles, const WideBox& box,
                                         const WideWords& words) {
  constexpr int kQuadsLog2 = 4;  // of the out channels
  const int count = 1 << (st.rows_log2 + st.out_log2 + kQuadsLog2);
  const int length_log2 = st.out_log2 + st.shape.phases - 1;
  for (int i = threadIdx.x; i < count; i += kChainThreads) {
    const int n = i >> kQuadsLog2, m = (i & ((1 << kQuadsLog2) - 1)) * 4;
    const float* at = sums + n * kWideSumsPitch + m;
    float4 v = Load4(at);
    Add4(v, Load4(at + n_tiles * 8 * kWideSumsPitch));
    const int row = team.row0 + (n & ((1 << st.rows_log2) - 1)), channel = team.out + m;
    const int group = (team.tile << st.groups_log2) + (channel >> st.item_log2);
    const int position = (n >> st.rows_log2) * st.shape.phases + team.phase;
    const int vector = (((team.split << length_log2) + position) << st.item_log2) +
                       (channel & ((1 << st.item_log2) - 1));
    StoreWords4(words.at + (group * kWideRows + row) * box.words + vector, v, words.parity);
  }
}

// Where a stage's products happen.
struct WidePlace {
  uint8_t* input;  // shared; the sums take its place
  WideWords sums, beside;
};

// The products of a block, by warpgroups: weights from registers, `a` first, positions from shared
// memory.
// Element n of a tile is (position, row), the row fastest.
template <Format F, int kTaps, bool kBeside, int NT>
__device__ __forceinline__ void MultiplyAndSend(const WideStage& st, const WideTeam& team,
                                                const WideTile& tile, WideStream& stream,
                                                WideSlot& a, const WidePlace& place) {
#ifdef DP_HAVE_WGMMA
  constexpr int kFragments = kTaps + kBeside;
  constexpr bool kAhead = !kBeside || NT < 8;  // as far as there are registers
  const int step = kPackBytes << st.rows_log2, pitch = st.places * step, warp = threadIdx.x >> 5;
  const int even = st.shape.stride == 2 ? (1 << st.in_log2) / 2 + 1 : 0;
  uint64_t at = WgmmaPlainTile(SharedAddress(place.input) + team.phase * step +
                                   warp / 4 * tile.slots * kWideSlotBlocks * 2 * pitch,
                               pitch);
  float main[NT * 4] = {}, beside[kBeside ? NT * 4 : 4] = {};
#pragma unroll 1
  for (int left = tile.slots; left > 0; --left) {
    BeginWgmma();
#pragma unroll
    for (int block = 0; block < kWideSlotBlocks; ++block) {
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int places = kTaps == 3 ? (tap == 1 ? even : tap / 2) : tap;
        Wgmma<F>(main, a.v[block * kFragments + tap], at + (places * step >> 4));
      }
      if constexpr (kBeside)
        Wgmma<F>(beside, a.v[block * kFragments + kTaps], at + (st.left * step >> 4));
      at += 2 * pitch >> 4;
    }
    CommitWgmma();
    WideSlot next;
    if (kAhead && left > 1) next = stream.Take();
    WaitWgmma<0>();
    if (!kAhead && left > 1) next = stream.Take();
    a = next;
  }
  __syncthreads();
  float* sums = reinterpret_cast<float*>(place.input);
  float* part = sums + warp / 4 * NT * 8 * kWideSumsPitch;
  using Sums = const float(*)[NT][4];
  PutSums<NT>(*reinterpret_cast<Sums>(main), part, kWideSumsPitch, warp % 4 * 16, threadIdx.x & 31);
  __syncthreads();
  SendSums(st, team, sums, NT, st.sums, place.sums);
  if constexpr (kBeside) {
    __syncthreads();
    PutSums<NT>(*reinterpret_cast<Sums>(beside), part, kWideSumsPitch, warp % 4 * 16,
                threadIdx.x & 31);
    __syncthreads();
    SendSums(st, team, sums, NT, st.beside, place.beside);
  }
  __syncthreads();  // the next input takes their place
#endif
}

template <Format F, int kTaps, bool kBeside>
__device__ __forceinline__ void MultiplyTiles(const WideStage& st, const WideTeam& team,
                                              const WideTile& tile, WideStream& stream, WideSlot& a,
                                              const WidePlace& place) {
  const int positions = 1 << (st.rows_log2 + st.out_log2);
  if (positions == 64)
    return MultiplyAndSend<F, kTaps, kBeside, 8>(st, team, tile, stream, a, place);
  if (positions == 32)
    return MultiplyAndSend<F, kTaps, kBeside, 4>(st, team, tile, stream, a, place);
  MultiplyAndSend<F, kTaps, kBeside, 2>(st, team, tile, stream, a, place);
}

template <Format F>
__device__ __forceinline__ void RunWideStage(ChainBlock& b, const WideChainArgs& w,
                                             const WideStage& st, const WideTile& tile,
                                             WideStream& stream, uint8_t* input, uint32_t pass,
                                             float4& rest) {
  const WideItem item = ItemOfBlock(blockIdx.x);
  const FusedConvShape& s = st.shape;
  // what was cleared is seen before the head's words, which end the pass
  if (st.keep == nullptr) __threadfence();
  const WideTeam team = TeamOf(st, item);
  if (s.in_c > 0 && team.multiplies) {
    const WidePlace place = {input, WordsOf(w, st.sums, pass), WordsOf(w, st.beside, pass)};
    WideSlot a = stream.Take();
    CollectInput(b, st, team, input);
    FenceForWgmma();
    __syncthreads();
    if (s.taps == 5 && s.residual) {
      MultiplyTiles<F, 5, true>(st, team, tile, stream, a, place);
    } else if (s.taps == 5) {
      MultiplyTiles<F, 5, false>(st, team, tile, stream, a, place);
    } else if (s.taps == 3) {
      MultiplyTiles<F, 3, false>(st, team, tile, stream, a, place);
    } else {
      MultiplyTiles<F, 2, false>(st, team, tile, stream, a, place);
    }
  }
  FinishItem<Storage<F>>(b, w, st, item, pass, rest);
}

}  // namespace dp

#endif  // KERNELS_WIDE_STAGE_CUH_
