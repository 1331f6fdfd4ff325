#ifndef KERNELS_CHAIN_NARROW_CUH_
#define KERNELS_CHAIN_NARROW_CUH_

#include "kernels/chain_narrow_input.cuh"

// A stage of the persistent chain at one or two rows. It lasts as long as the way from the words of
// the stage before to its own, so whatever does not need them (borders, addresses, the first
// weights) is done while they are waited for.

namespace dp {

// Zeros before, between and behind the input's rows, of which there are at most two.
__device__ __forceinline__ void ClearBorders(const ChainStage& st, uint8_t* input) {
  const FusedLayout& layout = st.layout;
  const int wide_log2 = Log2(st.share / kFusedPack), length = st.shape.in_length;
  const int gap = layout.period - length, borders = layout.left + st.rows * gap;
  for (int i = threadIdx.x; i < borders << wide_log2; i += kChainThreads) {
    const int border = i >> wide_log2, pack = i & ((1 << wide_log2) - 1);
    const int position =
        border + (border >= layout.left ? length : 0) + (border >= layout.left + gap ? length : 0);
    *reinterpret_cast<uint4*>(input + position * layout.pitch + pack * 16) = make_uint4(0, 0, 0, 0);
  }
}

// Where a thread's four sums stand among those of the first part, and where they go.
struct NarrowPush {
  int from;
  float* to;
};

// Vectors of four sums that a block hands on; those of a 1x1 beside follow the convolution's.
__device__ __forceinline__ int NarrowVectors(const ChainStage& st) {
  return st.rows * st.shape.out_length * (st.m_channels / 4) << (st.shape.residual ? 1 : 0);
}

__device__ __forceinline__ NarrowPush MakePush(const ChainStage& st, const WarpTile& tile, int i) {
  const FusedConvShape& s = st.shape;
  const int quads_log2 = Log2(st.m_channels / 4), pitch = st.m_channels + 4;
  const int count = (st.rows * s.out_length) << quads_log2;
  const bool beside = i >= count;
  if (beside) i -= count;
  const int n = i >> quads_log2, m = (i & ((1 << quads_log2) - 1)) * 4;
  const int l = n & (s.out_length - 1), row = tile.row0 + (n >> Log2(s.out_length));
  const int position = (row * st.splits + tile.split) * s.out_length * s.phases + l * s.phases;
  return {(beside ? tile.parts * st.n_tiles * 8 * pitch : 0) + n * pitch + m,
          (beside ? st.residual_words : st.words) +
              static_cast<size_t>(position + tile.phase) * s.out_c + tile.out0 + m};
}

// What a thread knows of its stage before the input is there.
struct NarrowWork {
  static constexpr int kMaxPairs = 4;         // of position tiles
  uint32_t rows[kMaxPairs];                   // this lane's addresses in each
  uint32_t weights[kChunkFragments][4] = {};  // the next chunk
  int block, tap;                             // of the next step
  NarrowPush push;                            // of the thread's first vector

  __device__ __forceinline__ void LoadWeights(ChainStream<1>& stream) {
    WaitCopies<ChainStream<1>::kPending - 1>();  // one chunk more may have been read than issued
    const uint32_t chunk = stream.Read();
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) LoadFragment(weights[i], chunk + i * kFragmentBytes);
  }

  __device__ __forceinline__ void Prepare(const ChainStage& st, const WarpTile& tile,
                                          ChainStream<1>& stream, uint8_t* input) {
    const FusedConvShape& s = st.shape;
    if (tile.steps > 0) LoadWeights(stream);
    const int lane = threadIdx.x & 31, taps = s.taps + s.residual;
    const int positions = st.rows * s.out_length, length_log2 = Log2(s.out_length);
    block = DivideSmall(tile.begin, taps), tap = tile.begin - block * taps;
#pragma unroll
    for (int j = 0; j < kMaxPairs; ++j) {
      const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), positions - 1);
      const int row =
          (n >> length_log2) * st.layout.period + (n & (s.out_length - 1)) * s.stride + tile.phase;
      rows[j] = SharedAddress(input) + row * st.layout.pitch + ((lane >> 3) & 1) * 16;
    }
    push = MakePush(st, tile, threadIdx.x);
  }
};

// All products of a warp, whose first weights are there.
template <Format F, int NT, bool kResidual>
__device__ __forceinline__ void MultiplyNarrow(Accumulators<1, NT, kResidual>& acc,
                                               NarrowWork& work, const FusedConvShape& s, int pitch,
                                               int steps, ChainStream<1>& stream) {
  constexpr int kPairs = (NT + 1) / 2, kSets = Accumulators<1, NT, kResidual>::kSets;
  constexpr int kAtOnce = kPairs == 1 ? kChunkFragments : 1;  // more do not fit the registers
  const int taps = s.taps + kResidual, to_block = kStepBytes - (taps - 1) * pitch;
  const int to_beside = (s.pad - s.taps) * pitch;
  int offset = work.block * kStepBytes + work.tap * pitch, tap = work.tap;
  for (int left = steps; left > 0; left -= kChunkFragments) {
    uint32_t b[kAtOnce][kPairs][4];
    bool beside[kAtOnce];
#pragma unroll
    for (int first = 0; first < kChunkFragments; first += kAtOnce) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        beside[i] = kResidual && tap + 1 == taps;
#pragma unroll
        for (int j = 0; j < kPairs; ++j)
          LoadMatrix4(b[i][j], work.rows[j] + offset + (beside[i] ? to_beside : 0));
        // the last chunk's empty steps stay where there is input
        const bool live = first + i + 1 < left, wraps = tap + 1 == taps;
        offset += live ? wraps ? to_block : pitch : 0;
        tap = live ? wraps ? 0 : tap + 1 : tap;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int step = first + i;
        if constexpr (kResidual) {
          if (beside[i]) {
            MultiplyStep<F, NT>(acc.residual[0], work.weights[step], b[i]);
            continue;
          }
        }
        MultiplyStep<F, NT>(acc.main[step % kSets][0], work.weights[step], b[i]);
      }
    }
    if (left > kChunkFragments) work.LoadWeights(stream);
    stream.Issue();
  }
#pragma unroll
  for (int set = 1; set < kSets; ++set)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) acc.main[0][0][j][q] += acc.main[set][0][j][q];
}

// Multiplies and puts the warp's sums among those of its block.
template <Format F, int NT, bool kResidual>
__device__ __forceinline__ void PutProducts(const ChainStage& st, const WarpTile& tile,
                                            NarrowWork& work, ChainStream<1>& stream, float* sums) {
  Accumulators<1, NT, kResidual> acc;
  const int lane = threadIdx.x & 31, pitch = st.m_channels + 4, size = st.n_tiles * 8 * pitch;
  float* part = sums + tile.part * size;
  float* beside = part + tile.parts * size;
  const int warp_m = tile.warp_m;
  MultiplyNarrow<F, NT, kResidual>(acc, work, st.shape, st.layout.pitch, tile.steps, stream);
  PutSums<NT>(acc.main[0][0], part, pitch, warp_m, lane);
  if constexpr (kResidual) PutSums<NT>(acc.residual[0], beside, pitch, warp_m, lane);
}

template <Format F, bool kResidual>
__device__ __forceinline__ void PutTiles(const ChainStage& st, const WarpTile& tile,
                                         NarrowWork& work, ChainStream<1>& stream, float* sums) {
  switch (st.n_tiles) {
    case 1:
      return PutProducts<F, 1, kResidual>(st, tile, work, stream, sums);
    case 2:
      return PutProducts<F, 2, kResidual>(st, tile, work, stream, sums);
    case 4:
      return PutProducts<F, 4, kResidual>(st, tile, work, stream, sums);
    default:
      return PutProducts<F, 8, kResidual>(st, tile, work, stream, sums);
  }
}

template <Format F>
__device__ __forceinline__ void RunNarrowStage(ChainBlock& b, const ChainStage& st,
                                               const WarpTile& tile, const NarrowSource& source,
                                               ChainStream<1>& stream, uint8_t* input,
                                               float* sums) {
  if (!tile.any) return;
  NarrowWork work;
  bool prepared = false;
  const auto prepare = [&] {
    if (prepared) return;
    prepared = true;
    ClearBorders(st, input);
    work.Prepare(st, tile, stream, input);
  };
  CollectNarrow<Storage<F>>(b, source, input, prepare);
  prepare();
  __syncthreads();
  if (st.shape.residual) {
    PutTiles<F, true>(st, tile, work, stream, sums);
  } else {
    PutTiles<F, false>(st, tile, work, stream, sums);
  }
  const int vectors = NarrowVectors(st), parts = tile.parts;
  const int size = st.n_tiles * 8 * (st.m_channels + 4);
  __syncthreads();
  for (int i = threadIdx.x; i < vectors;) {
    const float* from = sums + work.push.from;
    float4 v = Load4(from);
#pragma unroll
    for (int part = 1; part < kChainWarps; ++part)
      if (part < parts) Add4(v, Load4(from + part * size));
    StoreWords4(work.push.to, v, b.parity);
    i += kChainThreads;
    if (i < vectors) work.push = MakePush(st, tile, i);
  }
}

}  // namespace dp

#endif  // KERNELS_CHAIN_NARROW_CUH_
