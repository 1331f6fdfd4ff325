#ifndef KERNELS_WIDE_STAGE_CUH_
#define KERNELS_WIDE_STAGE_CUH_

#include "kernels/chain_stage.cuh"
#include "kernels/fused_multiply.cuh"
#include "kernels/wgmma.cuh"
#include "kernels/wide_input.cuh"

// One convolution of the wide chain: collect the input, multiply, send the sums, finish an item.

namespace dp {

// A block's weights in a stage: for each filling of the input, of each warp `bytes`.
struct alignas(16) WideTile {
  const uint8_t* weight;
  int fillings, bytes;
};

__device__ __forceinline__ WideTile MakeWideTile(const WideStage& st, const WideItem& item) {
  const FusedConvShape& s = st.shape;
  const WideTeam team = TeamOf(st, item);
  if (s.in_c == 0 || !team.multiplies) return {};
  const int out = team.phase * s.out_c + ((team.tile << st.groups_log2) << st.item_log2) + team.out;
  const int fillings = st.share / kWideFilling;
  const int bytes = kWidePieces * (s.taps + s.residual) * kFragmentBytes;
  const size_t first = static_cast<size_t>(out / kWideTile) * (s.in_c / kWideFilling) +
                       static_cast<size_t>(team.split) * fillings;
  return {static_cast<const uint8_t*>(st.weight) + first * kChainWarps * bytes, fillings, bytes};
}

// A warp's weights of all stages, round and round: what it multiplies with next is on its way to
// shared memory, by the bulk copy engine.
struct WideStream {
  const WideTile* tiles;  // shared: of the stages
  int stage_count;
  uint32_t buffer, arrived;  // shared: of the warp, and its barrier
  uint64_t policy;           // of the L2 cache: weights are not to drive out what blocks hand over
  int stage = -1, left = 0, half = 0;  // half: bytes
  uint32_t parity = 0;
  const uint8_t* from = nullptr;

  __device__ __forceinline__ void Begin() {
    if (threadIdx.x % 32 == 0) InitBarrier(arrived, 2);
    FenceForWgmma();
    Ask();
    AskRest();
  }
  // Waits for what was asked for.
  __device__ __forceinline__ void Wait() {
    while (!BarrierPassed(arrived, parity)) {
    }
    parity ^= 1;
  }
  // Asks for half of what comes next, once all lanes have read what was there.
  __device__ __forceinline__ void Ask() {
    while (left == 0) {
      if (++stage == stage_count) stage = 0;
      const WideTile& tile = tiles[stage];
      left = tile.fillings, half = tile.bytes / 2;
      from = tile.weight + threadIdx.x / 32 * tile.bytes;
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) CopyBulk(buffer, from, half, arrived, policy);
  }
  // Asks for the other half; in two parts what is handed on meanwhile comes through sooner.
  __device__ __forceinline__ void AskRest() {
    if (threadIdx.x % 32 == 0) CopyBulk(buffer + half, from + half, half, arrived, policy);
    from += kChainWarps * 2 * half;
    --left;
  }
};

// A warp's weights of a filling of the input: of its 16 out channels, and of half of the in
// channels.
struct WideWeights {
  uint32_t main[kWidePieces * 5][4];  // the last ones are others' where there are fewer taps
  uint32_t beside[kWidePieces][4] = {};

  __device__ __forceinline__ void Load(WideStream& stream, const FusedConvShape& s) {
    const uint32_t at = stream.buffer + threadIdx.x % 32 * 16;
    stream.Wait();
#pragma unroll
    for (int i = 0; i < kWidePieces * 5; ++i) LoadFragment(main[i], at + i * kFragmentBytes);
    if (s.residual) {
#pragma unroll
      for (int i = 0; i < kWidePieces; ++i)
        LoadFragment(beside[i], at + (kWidePieces * 5 + i) * kFragmentBytes);
    }
  }
  // Once they are loaded, asks for what comes next in their place.
  __device__ __forceinline__ void AskForNext(WideStream& stream) const {
    WaitFor(main[kWidePieces * 5 - 1][3]);
    WaitFor(beside[kWidePieces - 1][3]);
    stream.Ask();
  }

 private:
  // An instruction that needs `loaded` and that no compiler leaves out; loads from shared memory
  // end in order. The number, twice NaN, is no pair of weights.
  __device__ __forceinline__ static void WaitFor(uint32_t loaded) {
    if (loaded == 0x7fff7fff) __nanosleep(0);
  }
};

// Adds the two groups' sums, `part` numbers apart, of 16 kRounds positions or, in the first round,
// fewer, and sends them to the blocks whose items they are.
template <int kRounds>
__device__ __forceinline__ void SendSums(const WideRoute& r, const float* sums, int part,
                                         uint8_t* to, uint32_t parity) {
  const int n = threadIdx.x / 16, m = threadIdx.x % 16 * 4, rows_log2 = r.rows_log2;
  if (n >> r.positions_log2 > 0) return;
  const int channel = r.out + m, in_group = channel & ((1 << r.item_log2) - 1);
  to += (channel >> r.item_log2) * r.to_group + in_group * (r.sums16 ? 2 : 4) +
        (n & ((1 << rows_log2) - 1)) * r.to_row + (n >> rows_log2) * r.to_position;
  // with 32 rows every second round is 16 rows on, otherwise all are 16 positions and rows on
  const bool rows32 = rows_log2 > 4;
  const int step = rows32 ? 16 * r.to_row : (16 >> rows_log2) * r.to_position;
  const int two_steps = rows32 ? r.to_position : 2 * step;
  const float* at = sums + n * kWideSumsPitch + m;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    float4 v = Load4(at + round * 16 * kWideSumsPitch);
    Add4(v, Load4(at + round * 16 * kWideSumsPitch + part));
    uint8_t* there = to + round / 2 * two_steps + round % 2 * step;
    if (r.sums16) {
      WideSums16::Store(there, v, parity);
    } else {
      WideSums32::Store(there, v, parity);
    }
  }
}

// Collects the input from in channel `channel0` on, for the products to see, and their weights.
__device__ __forceinline__ void Prepare(ChainBlock& b, const WideRoute& r, int channel0,
                                        const FusedConvShape& s, WideStream& stream,
                                        WideWeights& weights, uint8_t* input) {
  const auto load = [&] {
    weights.Load(stream, s);
    __syncthreads();  // the input takes the place of sums that all have sent
  };
  CollectInput(b, r, channel0, input, load, [&] { weights.AskForNext(stream); });
  FenceForWgmma();
  __syncthreads();
}

// The products of a block, 8 NT positions; each of its two warpgroups has half of the in channels.
// Element n of a tile is (position, row), the row fastest. kRefill: the share takes several
// fillings of the input, which is at `shared`; the first one is there. Leaves the sums in its
// place: the convolution's, each warpgroup's part, then the 1x1's.
template <Format F, int kTaps, bool kBeside, int NT, bool kRefill>
__device__ __forceinline__ void Multiply(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                         WideStream& stream, WideWeights& weights,
                                         uint8_t* shared) {
#ifdef DP_HAVE_WGMMA
  const int step = kPackBytes << st.rows_log2, pitch = st.places * step, warp = threadIdx.x >> 5;
  const int even = st.shape.stride == 2 ? (1 << st.in_log2) / 2 + 1 : 0, half = warp / 4;
  const uint64_t input =
      WgmmaPlainTile(SharedAddress(shared) + r.phase * step + half * 2 * pitch, pitch);
  float main[NT * 4] = {}, beside[kBeside ? NT * 4 : 4] = {};
#pragma unroll 1
  for (int done = kWideFilling;; done += kWideFilling) {
    BeginWgmma();
#pragma unroll
    for (int piece = 0; piece < kWidePieces; ++piece) {
      const uint64_t at = input + piece * (4 * pitch >> 4);
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int places = kTaps == 3 ? (tap == 1 ? even : tap / 2) : tap;
        Wgmma<F>(main, weights.main[piece * kTaps + tap], at + (places * step >> 4));
      }
    }
    if constexpr (kBeside) {
      CommitWgmma();
      WaitWgmma<0>();
      BeginWgmma();
#pragma unroll
      for (int piece = 0; piece < kWidePieces; ++piece)
        Wgmma<F>(beside, weights.beside[piece],
                 input + piece * (4 * pitch >> 4) + (st.left * step >> 4));
    }
    CommitWgmma();
    WaitWgmma<0>();
    stream.AskRest();
    __syncthreads();
    if (!kRefill || done == st.share) break;
    Prepare(b, r, r.channel0 + done, st.shape, stream, weights, shared);
  }
  constexpr int kPart = NT * 8 * kWideSumsPitch;
  using Sums = const float(*)[NT][4];
  float* sums = reinterpret_cast<float*>(shared) + half * kPart;
  PutSums<NT>(*reinterpret_cast<Sums>(main), sums, kWideSumsPitch, warp % 4 * 16, threadIdx.x & 31);
  if constexpr (kBeside)
    PutSums<NT>(*reinterpret_cast<Sums>(beside), sums + 2 * kPart, kWideSumsPitch, warp % 4 * 16,
                threadIdx.x & 31);
#endif
}

template <Format F, int kTaps, bool kBeside, typename... Args>
__device__ __forceinline__ void MultiplyTiles(ChainBlock& b, const WideStage& st,
                                              const WideRoute& r, Args&... args) {
  const int positions = 1 << r.positions_log2;
  if (kTaps != 3 && st.share > kWideFilling)
    return Multiply<F, kTaps, kBeside, 8, true>(b, st, r, args...);
  if (!kBeside && positions == 128) return Multiply<F, kTaps, false, 16, false>(b, st, r, args...);
  if (positions == 64) return Multiply<F, kTaps, kBeside, 8, false>(b, st, r, args...);
  if (positions == 32) return Multiply<F, kTaps, kBeside, 4, false>(b, st, r, args...);
  Multiply<F, kTaps, kBeside, 2, false>(b, st, r, args...);
}

// Hands on the sums that the products left, of the convolution and the 1x1.
__device__ __forceinline__ void SendAll(const WideRoute& r, bool residual, uint32_t pass,
                                        const uint8_t* shared) {
  const int part = max(16, 1 << r.positions_log2) * kWideSumsPitch;
  const float* sums = reinterpret_cast<const float*>(shared);
#pragma unroll 1
  for (int beside = 0; beside <= residual; ++beside, sums += 2 * part) {
    const WideTurn turn = TurnOf(beside ? r.turns_beside : r.turns, pass);
    uint8_t* to = (beside ? r.to_beside : r.to) + turn.bytes;
    if (r.positions_log2 == 7) {
      SendSums<8>(r, sums, part, to, turn.parity);
    } else if (r.positions_log2 == 6) {
      SendSums<4>(r, sums, part, to, turn.parity);
    } else if (r.positions_log2 == 5) {
      SendSums<2>(r, sums, part, to, turn.parity);
    } else {
      SendSums<1>(r, sums, part, to, turn.parity);
    }
  }
}

// Makes the block's products of a stage and hands their sums on.
template <Format F>
__device__ __forceinline__ void MultiplyAndSend(ChainBlock& b, const WideStage& st,
                                                const WideRoute& r, WideStream& stream,
                                                uint8_t* shared, uint32_t pass) {
  const FusedConvShape& s = st.shape;
  WideWeights weights;
  Prepare(b, r, r.channel0, s, stream, weights, shared);
  if (s.taps == 5 && s.residual) {
    MultiplyTiles<F, 5, true>(b, st, r, stream, weights, shared);
  } else if (s.taps == 5) {
    MultiplyTiles<F, 5, false>(b, st, r, stream, weights, shared);
  } else if (s.taps == 3) {
    MultiplyTiles<F, 3, false>(b, st, r, stream, weights, shared);
  } else {
    MultiplyTiles<F, 2, false>(b, st, r, stream, weights, shared);
  }
  __syncthreads();
  SendAll(r, s.residual, pass, shared);
}

template <Format F>
__device__ __forceinline__ void RunWideStage(ChainBlock& b, const WideStage& st, const WideRoute& r,
                                             const WideThread& thread, WideStream& stream,
                                             uint8_t* shared, uint32_t pass, float4& rest) {
  // what was cleared is seen before the head's words, which end the pass
  if (st.keep == nullptr) __threadfence();
  if (r.multiplies) MultiplyAndSend<F>(b, st, r, stream, shared, pass);
  FinishItem<Storage<F>>(b, st, r, thread, ItemOfBlock(blockIdx.x).group, pass, rest);
}

}  // namespace dp

#endif  // KERNELS_WIDE_STAGE_CUH_
