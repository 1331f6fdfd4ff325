#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/epilogue_math.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// One convolution of the persistent chain: collect, multiply, hand on.

namespace mjp {

inline constexpr int kStepChannels = kStepBytes / 2;
inline constexpr int kCopyVectors = 8;  // under way per thread while finished words are copied

// What is read once in a long while is to leave the L2 cache first. Made where it is asked for: who
// asks again and again would hold it in two registers all along otherwise.
__device__ __forceinline__ uint64_t EvictFirstPolicy() {
  uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}
// Copies like CopyAsync16, by such a policy.
__device__ __forceinline__ void CopyAsync16Once(uint32_t shared, const void* global, bool valid,
                                                uint64_t policy) {
#if __CUDA_ARCH__ >= 800
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(shared),
               "l"(global), "r"(bytes), "l"(policy));
#else
  CopyAsync16(shared, global, valid);
#endif
}

// What one warp does in a stage, and where its weights lie.
struct WarpTile {
  const uint8_t* weight;
  uint32_t tile_stride;     // bytes between tiles of 16 out channels
  int steps, begin;         // of the block's (channel block, tap) order
  int block, tap;           // of the first step
  int warp_m, part, parts;  // the block's out channels from warp_m on; its part of the steps
  int row0, split;          // of the block
  int m0, out0, phase;      // m0: among the channels of all phases; out0: of its phase
  bool any;                 // whether the block has a tile in this stage
};

__device__ __forceinline__ WarpTile MakeTile(const ChainStage& s, int mi, int warp) {
  WarpTile t;
  const int m_blocks = s.shape.out_c * s.shape.phases / s.m_channels, block = blockIdx.x;
  t.any = block < m_blocks * s.splits * (s.shape.rows / s.rows);
  t.split = block % s.splits;
  t.m0 = block / s.splits % m_blocks * s.m_channels;
  t.row0 = block / (s.splits * m_blocks) * s.rows;
  t.phase = t.m0 >= s.shape.out_c;
  t.out0 = t.m0 - t.phase * s.shape.out_c;
  const int m_warps = s.m_channels / (16 * mi), taps = s.shape.taps + s.shape.residual;
  const int row_blocks = s.shape.in_c / kStepChannels, blocks = row_blocks / s.splits;
  t.parts = kChainWarps / m_warps;
  t.part = warp / m_warps;
  t.warp_m = warp % m_warps * mi * 16;
  t.begin = blocks * taps * t.part / t.parts;
  t.steps = t.any ? blocks * taps * (t.part + 1) / t.parts - t.begin : 0;
  t.block = t.begin / taps, t.tap = t.begin % taps;
  const int tile = (t.m0 + t.warp_m) / 16;
  const size_t fragment =
      (static_cast<size_t>(tile) * row_blocks + t.split * blocks) * taps + t.begin;
  t.weight = static_cast<const uint8_t*>(s.weight) + fragment * kFragmentBytes;
  t.tile_stride = static_cast<uint32_t>(row_blocks * taps * kFragmentBytes);
  return t;
}

// This warp's weights of all stages, round and round.
template <int MI>
struct ChainStream {
  static constexpr int kSteps = kChunkFragments / MI, kRing = ChainRingChunks(MI);
  static constexpr int kPending = kRing - 1;
  const WarpTile* tiles;  // shared: of the stages, kChainWarps apart
  int stage_count, lane;
  uint32_t ring;    // with the lane
  uint64_t policy;  // of the L2 cache: weights are not to drive out what blocks hand each other
  int stage = -1, left = 0, slot = 0, read_slot = 0;
  const uint8_t* from = nullptr;
  uint32_t tile_stride = 0;

  __device__ __forceinline__ uint32_t Read() {
    const uint32_t chunk = ring + read_slot * kChunkBytes;
    if (++read_slot == kRing) read_slot = 0;
    return chunk;
  }
  __device__ __forceinline__ void Issue() {
    for (int tried = 0; left <= 0 && tried < stage_count; ++tried) {
      if (++stage == stage_count) stage = 0;
      const WarpTile& tile = tiles[stage * kChainWarps];
      from = tile.weight + lane * 16, tile_stride = tile.tile_stride, left = tile.steps;
    }
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
#pragma unroll
      for (int m = 0; m < MI; ++m) {
        // steps beyond the last multiply by zero
        CopyAsync16Once(ring + slot * kChunkBytes + (i * MI + m) * kFragmentBytes,
                        from + m * tile_stride + i * kFragmentBytes, i < left, policy);
      }
    CommitCopies();
    from += kSteps * kFragmentBytes;
    left -= kSteps;
    if (++slot == kRing) slot = 0;
  }
};

// Finished words into this block's input, many under way at once.
template <typename T>
__device__ __forceinline__ void CopyFinished(ChainBlock& b, const ChainSource& s,
                                             const ChainStage& st, uint8_t* input, int row0,
                                             int from, int channels) {
  const int wide_log2 = Log2(channels / 4), row_log2 = wide_log2 + Log2(st.shape.in_length);
  const int count = st.rows << row_log2, wide = (1 << wide_log2) - 1;
  const int length = st.shape.in_length;
  for (int base = threadIdx.x; base < count; base += kChainThreads * kCopyVectors) {
    uint4 w[kCopyVectors] = {};
    for (int tries = 0;; ++tries) {
      uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kCopyVectors; ++i) {
        const int at = base + i * kChainThreads;
        if (at < count)
          w[i] = LoadWords4(
              s.words + ((static_cast<size_t>(row0) * length + (at >> wide_log2)) * s.channels) +
              from + (at & wide) * 4);
      }
#pragma unroll
      for (int i = 0; i < kCopyVectors; ++i)
        if (base + i * kChainThreads < count) missing |= Missing(w[i], b.parity);
      if ((missing & 1) == 0 || b.watch.GivesUp(tries)) break;
    }
#pragma unroll
    for (int i = 0; i < kCopyVectors; ++i) {
      const int at = base + i * kChainThreads;
      if (at >= count) break;
      const int row = at >> row_log2, l = (at >> wide_log2) & (length - 1);
      const float4 numbers =
          make_float4(WordValue(w[i].x), WordValue(w[i].y), WordValue(w[i].z), WordValue(w[i].w));
      *reinterpret_cast<Pack<T, 4>*>(
          input + (st.layout.left + row * st.layout.period + l) * st.layout.pitch +
          (at & wide) * 8) = PackFour<T>(numbers);
    }
  }
}

// Fills the input with this tile's share of the channels, zeros around each row.
template <typename T>
__device__ __forceinline__ void Collect(ChainBlock& b, const ChainStage& st, const WarpTile& tile,
                                        uint8_t* input) {
  const int channels = st.share, c0 = tile.split * channels;
  const bool second = c0 >= st.source[0].channels;
  const ChainSource& s = st.source[second];
  const int from = second ? c0 - st.source[0].channels : c0, length = st.shape.in_length;
  const FusedLayout& layout = st.layout;
  const int wide_log2 = Log2(channels / kFusedPack);
  for (int i = threadIdx.x; i < (st.rows + 1) << wide_log2; i += kChainThreads) {
    const int r = (i >> wide_log2) - 1, c = (i & ((1 << wide_log2) - 1)) * kFusedPack;
    const int begin = r < 0 ? -layout.left : length, end = r < 0 ? 0 : layout.period;
    for (int l = begin; l < end; ++l)
      *reinterpret_cast<uint4*>(
          input + (layout.left + max(r, 0) * layout.period + l) * layout.pitch + c * 2) =
          make_uint4(0, 0, 0, 0);
  }
  if (s.words && !s.bias && !s.norm_scale)
    return CopyFinished<T>(b, s, st, input, tile.row0, from, channels);
  const int per_row_log2 = Log2(channels) - Log2(s.item_channels), items = st.rows << per_row_log2;
  const int first = from >> Log2(s.item_channels);
  const ChainTeam team = MakeTeam(items, length * s.item_channels / 4, b.moments);
  for (int i = team.index; i < items; i += team.count) {
    const int r = i >> per_row_log2, item = first + (i & ((1 << per_row_log2) - 1));
    FinishItem<T, kChainMaxVectors, false>(
        b, s, tile.row0 + r, item, length, team, tile.m0 == 0,
        [&](int l, int channel, const Pack<T, 4>& pack) {
          *reinterpret_cast<Pack<T, 4>*>(
              input + (layout.left + r * layout.period + l) * layout.pitch + (channel - from) * 2) =
              pack;
        });
  }
}

// Adds the warps' parts and hands the sums on.
__device__ __forceinline__ void PushSums(const ChainStage& st, const WarpTile& tile,
                                         const float* sums, float* words, uint32_t parity) {
  const FusedConvShape& s = st.shape;
  const int quads_log2 = Log2(st.m_channels / 4), pitch = st.m_channels + 4;
  const int count = (st.rows * s.out_length) << quads_log2, size = st.n_tiles * 8 * pitch;
  const int length_log2 = Log2(s.out_length);
  for (int i = threadIdx.x; i < count; i += kChainThreads) {
    const int n = i >> quads_log2, m = (i & ((1 << quads_log2) - 1)) * 4;
    float4 v = Load4(sums + n * pitch + m);
#pragma unroll
    for (int part = 1; part < kChainWarps; ++part)
      if (part < tile.parts) Add4(v, Load4(sums + part * size + n * pitch + m));
    const size_t row = static_cast<size_t>(tile.row0 + (n >> length_log2)) * st.splits + tile.split;
    const int position = (n & (s.out_length - 1)) * s.phases + tile.phase;
    StoreWords4(words + (row * s.out_length * s.phases + position) * s.out_c + tile.out0 + m, v,
                parity);
  }
}

template <Format F, int MI, int NT, bool kResidual>
__device__ __forceinline__ void MultiplyAndPush(const ChainStage& st, const WarpTile& tile,
                                                ChainStream<MI>& stream, uint8_t* input,
                                                float* sums, uint32_t parity) {
  const FusedConvShape s = st.shape;  // registers: it stands in shared memory
  const int lane = threadIdx.x & 31;
  uint32_t rows[(NT + 1) / 2];
  const int positions = st.rows * s.out_length, length_log2 = Log2(s.out_length);
#pragma unroll
  for (int j = 0; j < (NT + 1) / 2; ++j) {
    const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), positions - 1);
    const int row =
        (n >> length_log2) * st.layout.period + (n & (s.out_length - 1)) * s.stride + tile.phase;
    rows[j] = SharedAddress(input) + row * st.layout.pitch + ((lane >> 3) & 1) * 16;
  }
  Accumulators<MI, NT, kResidual> acc;
  MultiplyAll<F, MI, NT, kResidual>(acc, stream, tile.steps, tile.begin, rows, s, st.layout.pitch);
  __syncthreads();  // many rows leave no room for both: the sums take the input's place
  const int pitch = st.m_channels + 4;
  float* part = sums + tile.part * st.n_tiles * 8 * pitch;
#pragma unroll
  for (int m = 0; m < MI; ++m) PutSums<NT>(acc.main[0][m], part, pitch, tile.warp_m + m * 16, lane);
  __syncthreads();
  PushSums(st, tile, sums, st.words, parity);
  if constexpr (kResidual) {
    __syncthreads();
#pragma unroll
    for (int m = 0; m < MI; ++m)
      PutSums<NT>(acc.residual[m], part, pitch, tile.warp_m + m * 16, lane);
    __syncthreads();
    PushSums(st, tile, sums, st.residual_words, parity);
  }
  __syncthreads();
}

template <Format F, int MI, bool kResidual>
__device__ __forceinline__ void MultiplyTiles(const ChainStage& st, const WarpTile& tile,
                                              ChainStream<MI>& stream, uint8_t* input, float* sums,
                                              uint32_t parity) {
  switch (st.n_tiles) {
    case 1:
      return MultiplyAndPush<F, MI, 1, kResidual>(st, tile, stream, input, sums, parity);
    case 2:
      return MultiplyAndPush<F, MI, 2, kResidual>(st, tile, stream, input, sums, parity);
    case 4:
      return MultiplyAndPush<F, MI, 4, kResidual>(st, tile, stream, input, sums, parity);
    default:
      return MultiplyAndPush<F, MI, 8, kResidual>(st, tile, stream, input, sums, parity);
  }
}

// This block's share of finishing a stage's output.
template <typename T>
__device__ __forceinline__ void FinishOwn(ChainBlock& b, const ChainStage& st) {
  const ChainSource& s = st.own;
  const int per_row = s.channels / s.item_channels, length = st.shape.out_length * st.shape.phases;
  const ChainTeam team = MakeTeam(1, length * s.item_channels / 4, b.moments);
  if (team.index > 0) return;
  for (int i = blockIdx.x; i < b.a.rows * per_row; i += gridDim.x) {
    FinishItem<T, kChainOwnVectors, true>(b, s, i / per_row, i % per_row, length, team, true,
                                          [](int, int, const Pack<T, 4>&) {});
    if (team.warps > 1) team.Barrier();  // the moments are free again
  }
}

template <Format F, int MI>
__device__ __forceinline__ void RunStage(ChainBlock& b, const ChainStage& st, const WarpTile& tile,
                                         ChainStream<MI>& stream, uint8_t* input, float* sums) {
  using T = Storage<F>;
  if (tile.any) {
    Collect<T>(b, st, tile, input);
    __syncthreads();
    if (st.shape.residual) {
      MultiplyTiles<F, MI, true>(st, tile, stream, input, sums, b.parity);
    } else {
      MultiplyTiles<F, MI, false>(st, tile, stream, input, sums, b.parity);
    }
  }
  if (st.own.words) FinishOwn<T>(b, st);
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_
