#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/small_batch_input.cuh"

// A stage of the persistent chain at one or two rows. It lasts as long as the way from the words of
// the stage before to its own, so whatever does not need them (borders, addresses, the first
// weights) is done while they are waited for.

namespace mjp {

// What a block multiplies and hands on in a stage, worked out once per launch.
struct alignas(16) NarrowOutput {
  float *to, *beside_to;  // its first row and position: of the convolution, of the 1x1 beside
  int quads_log2, length_log2, last;           // of its channels, of the output; its last position
  int pitch, size, parts;                      // of sums: between positions and parts, in numbers
  int count, vectors;                          // of four sums: of the convolution, with the 1x1
  int row, position;                           // words between rows and positions
  int input_row, input_position, input_phase;  // bytes between those that are multiplied
  int border_log2, borders, left, gap, length, input_pitch;  // of the input: packs and positions
};

__device__ __forceinline__ NarrowOutput MakeOutput(const ChainStage& st, const WarpTile& tile) {
  const FusedConvShape& s = st.shape;
  const FusedLayout& layout = st.layout;
  NarrowOutput o;
  o.row = st.splits * s.out_length * s.phases * s.out_c, o.position = s.phases * s.out_c;
  const size_t at = static_cast<size_t>(tile.row0) * o.row +
                    (tile.split * s.out_length * s.phases + tile.phase) * s.out_c + tile.out0;
  o.to = st.words + at, o.beside_to = s.residual ? st.residual_words + at : nullptr;
  o.quads_log2 = Log2(st.m_channels / 4), o.length_log2 = Log2(s.out_length);
  o.last = st.rows * s.out_length - 1;
  o.pitch = st.m_channels + 4, o.size = st.n_tiles * 8 * o.pitch, o.parts = tile.parts;
  o.count = (o.last + 1) << o.quads_log2, o.vectors = o.count << s.residual;
  o.input_row = layout.period * layout.pitch, o.input_position = s.stride * layout.pitch;
  o.input_phase = tile.phase * layout.pitch;
  o.border_log2 = Log2(st.share / kFusedPack), o.left = layout.left, o.length = s.in_length;
  o.gap = layout.period - o.length, o.borders = (o.left + st.rows * o.gap) << o.border_log2;
  o.input_pitch = layout.pitch;
  return o;
}

// Zeros before, between and behind the input's rows, of which there are at most two.
__device__ __forceinline__ void ClearBorders(const NarrowOutput& o, uint8_t* input) {
  for (int i = threadIdx.x; i < o.borders; i += kChainThreads) {
    const int border = i >> o.border_log2, pack = i & ((1 << o.border_log2) - 1);
    const int position =
        border + (border >= o.left ? o.length : 0) + (border >= o.left + o.gap ? o.length : 0);
    *reinterpret_cast<uint4*>(input + position * o.input_pitch + pack * 16) =
        make_uint4(0, 0, 0, 0);
  }
}

// Where a thread's four sums stand among those of the first part, and where they go. Those of a 1x1
// beside follow the convolution's.
struct NarrowPush {
  int from;
  float* to;
};

__device__ __forceinline__ NarrowPush MakePush(const NarrowOutput& o, int i) {
  const bool beside = i >= o.count;
  if (beside) i -= o.count;
  const int n = i >> o.quads_log2, m = (i & ((1 << o.quads_log2) - 1)) * 4;
  const int row = n >> o.length_log2, l = n & ((1 << o.length_log2) - 1);
  return {(beside ? o.parts * o.size : 0) + n * o.pitch + m,
          (beside ? o.beside_to : o.to) + row * o.row + l * o.position + m};
}

// What a thread knows of its stage before the input is there.
struct NarrowWork {
  static constexpr int kMaxPairs = 4;         // of position tiles
  uint32_t rows[kMaxPairs] = {};              // this lane's addresses in each
  uint32_t weights[kChunkFragments][4] = {};  // the next chunk
  NarrowPush push;                            // of the thread's first vector

  __device__ __forceinline__ void LoadWeights(ChainStream<1>& stream) {
    WaitCopies<ChainStream<1>::kPending - 1>();  // one chunk more may have been read than issued
    const uint32_t chunk = stream.Read();
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) LoadFragment(weights[i], chunk + i * kFragmentBytes);
  }

  __device__ __forceinline__ void Prepare(const NarrowOutput& o, const WarpTile& tile,
                                          ChainStream<1>& stream, uint8_t* input) {
    if (tile.steps > 0) LoadWeights(stream);
    const int lane = threadIdx.x & 31, half = ((lane >> 3) & 1) * 16;
#pragma unroll
    for (int j = 0; j < kMaxPairs; ++j) {
      if (j * 16 > o.last) break;
      const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), o.last);
      rows[j] = SharedAddress(input) + (n >> o.length_log2) * o.input_row +
                (n & ((1 << o.length_log2) - 1)) * o.input_position + o.input_phase + half;
    }
    push = MakePush(o, threadIdx.x);
  }
};

// All products of a warp, whose first weights are there.
template <Format F, int NT, bool kResidual>
__device__ __forceinline__ void MultiplyNarrow(Accumulators<1, NT, kResidual>& acc,
                                               NarrowWork& work, const FusedConvShape& s, int pitch,
                                               const WarpTile& tile, ChainStream<1>& stream) {
  constexpr int kPairs = (NT + 1) / 2, kSets = Accumulators<1, NT, kResidual>::kSets;
  constexpr int kAtOnce = kPairs == 1 ? kChunkFragments : 1;  // more do not fit the registers
  const int taps = s.taps + kResidual, to_block = kStepBytes - (taps - 1) * pitch;
  const int to_beside = (s.pad - s.taps) * pitch;
  int offset = tile.block * kStepBytes + tile.tap * pitch, tap = tile.tap;
  for (int left = tile.steps; left > 0; left -= kChunkFragments) {
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
  MultiplyNarrow<F, NT, kResidual>(acc, work, st.shape, st.layout.pitch, tile, stream);
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
                                               const NarrowOutput& output, ChainStream<1>& stream,
                                               uint8_t* input, float* sums) {
  if (!tile.any) return;
  NarrowWork work;
  bool prepared = false;
  const auto prepare = [&] {
    if (prepared) return;
    prepared = true;
    ClearBorders(output, input);
    work.Prepare(output, tile, stream, input);
  };
  CollectNarrow<Storage<F>>(b, source, input, prepare);
  prepare();
  __syncthreads();
  if (st.shape.residual) {
    PutTiles<F, true>(st, tile, work, stream, sums);
  } else {
    PutTiles<F, false>(st, tile, work, stream, sums);
  }
  const int vectors = output.vectors, parts = output.parts, size = output.size;
  __syncthreads();
  for (int i = threadIdx.x; i < vectors;) {
    const float* from = sums + work.push.from;
    float4 v = Load4(from);
#pragma unroll
    for (int part = 1; part < kChainWarps; ++part)
      if (part < parts) Add4(v, Load4(from + part * size));
    StoreWords4(work.push.to, v, b.parity);
    i += kChainThreads;
    if (i < vectors) work.push = MakePush(output, i);
  }
}

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_
