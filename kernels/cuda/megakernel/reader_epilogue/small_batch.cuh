#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_

#include "kernels/cuda/megakernel/reader_epilogue/small_batch_input.cuh"

// A layer of the reader-epilogue kernel at one or two rows. It takes as long as the way from the
// partial sums of the layer before to its own, so whatever does not need those (halo, addresses,
// the first weights) is done while they are polled.

namespace mjp::megakernel {

// What a CTA multiplies and sends in a layer, computed once per launch.
struct alignas(16) SmallBatchOutput {
  float *to, *shortcut_to;  // its first row and position: of the convolution, of the shortcut
  int quads_log2, length_log2, last;  // of its channels, of the output; its last position
  int pitch, size, parts;             // accumulators: between positions and parts, values
  int count, vectors;                 // of four sums: of the convolution, with the shortcut
  int row, position;                  // values between rows and positions
  int input_row, input_position, input_phase;  // bytes between those that are multiplied
  int halo_log2, halo_packs, halo, gap, length, input_pitch;  // of the input: packs and positions
};

__device__ __forceinline__ SmallBatchOutput MakeOutput(const ReaderLayer& layer,
                                                       const WarpTile& tile) {
  const NormConvShape& s = layer.shape;
  const InputLayout& layout = layer.layout;
  SmallBatchOutput o;
  o.row = layer.split_k * s.out_length * s.phases * s.out_c, o.position = s.phases * s.out_c;
  const size_t at = static_cast<size_t>(tile.row0) * o.row +
                    (tile.k_slice * s.out_length * s.phases + tile.phase) * s.out_c + tile.out0;
  o.to = layer.partial_sums + at,
  o.shortcut_to = s.shortcut ? layer.shortcut_partial_sums + at : nullptr;
  o.quads_log2 = Log2(layer.m_channels / 4), o.length_log2 = Log2(s.out_length);
  o.last = layer.rows * s.out_length - 1;
  o.pitch = layer.m_channels + 4, o.size = layer.n_tiles * 8 * o.pitch, o.parts = tile.parts;
  o.count = (o.last + 1) << o.quads_log2, o.vectors = o.count << s.shortcut;
  o.input_row = layout.period * layout.pitch, o.input_position = s.stride * layout.pitch;
  o.input_phase = tile.phase * layout.pitch;
  o.halo_log2 = Log2(layer.k_slice / kPackChannels), o.halo = layout.halo, o.length = s.in_length;
  o.gap = layout.period - o.length, o.halo_packs = (o.halo + layer.rows * o.gap) << o.halo_log2;
  o.input_pitch = layout.pitch;
  return o;
}

// Zeros before, between and behind the input's rows, of which there are at most two.
__device__ __forceinline__ void ClearSmallBatchHalo(const SmallBatchOutput& o, uint8_t* input) {
  for (int i = threadIdx.x; i < o.halo_packs; i += kMmaThreads) {
    const int halo = i >> o.halo_log2, pack = i & ((1 << o.halo_log2) - 1);
    const int position =
        halo + (halo >= o.halo ? o.length : 0) + (halo >= o.halo + o.gap ? o.length : 0);
    *reinterpret_cast<uint4*>(input + position * o.input_pitch + pack * 16) =
        make_uint4(0, 0, 0, 0);
  }
}

// Where a thread's four accumulators stand in the first part, and where their sum goes. Those of
// the shortcut follow the convolution's.
struct SmallBatchSend {
  int from;
  float* to;
};

__device__ __forceinline__ SmallBatchSend MakeSend(const SmallBatchOutput& o, int i) {
  const bool shortcut = i >= o.count;
  if (shortcut) i -= o.count;
  const int n = i >> o.quads_log2, m = (i & ((1 << o.quads_log2) - 1)) * 4;
  const int row = n >> o.length_log2, l = n & ((1 << o.length_log2) - 1);
  return {(shortcut ? o.parts * o.size : 0) + n * o.pitch + m,
          (shortcut ? o.shortcut_to : o.to) + row * o.row + l * o.position + m};
}

// What a thread prepares of its layer before the input arrives.
struct SmallBatchWork {
  static constexpr int kMaxPairs = 4;         // of position tiles
  uint32_t rows[kMaxPairs] = {};              // this lane's addresses in each
  uint32_t weights[kChunkFragments][4] = {};  // the next chunk
  SmallBatchSend send;                        // of the thread's first vector

  __device__ __forceinline__ void LoadWeights(ReaderWeightRing<1>& ring) {
    WaitCopies<ReaderWeightRing<1>::kPending -
               1>();  // one chunk more may have been read than issued
    const uint32_t chunk = ring.Read();
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) LoadFragment(weights[i], chunk + i * kFragmentBytes);
  }

  __device__ __forceinline__ void Prepare(const SmallBatchOutput& o, const WarpTile& tile,
                                          ReaderWeightRing<1>& ring, uint8_t* input) {
    if (tile.steps > 0) LoadWeights(ring);
    const int lane = threadIdx.x & 31, half = ((lane >> 3) & 1) * 16;
#pragma unroll
    for (int j = 0; j < kMaxPairs; ++j) {
      if (j * 16 > o.last) break;
      const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), o.last);
      rows[j] = SharedAddress(input) + (n >> o.length_log2) * o.input_row +
                (n & ((1 << o.length_log2) - 1)) * o.input_position + o.input_phase + half;
    }
    send = MakeSend(o, threadIdx.x);
  }
};

// The GEMM tile of a warp, whose first weights are in registers.
template <Format F, int NT, bool kShortcut>
__device__ __forceinline__ void MmaSmallBatch(Accumulators<1, NT, kShortcut>& acc,
                                              SmallBatchWork& work, const NormConvShape& s,
                                              int pitch, const WarpTile& tile,
                                              ReaderWeightRing<1>& ring) {
  constexpr int kPairs = (NT + 1) / 2, kSets = Accumulators<1, NT, kShortcut>::kSets;
  constexpr int kInFlight = kPairs == 1 ? kChunkFragments : 1;  // more do not fit the registers
  const int taps = s.taps + kShortcut, to_block = kStepBytes - (taps - 1) * pitch;
  const int to_shortcut = (s.pad - s.taps) * pitch;
  int offset = tile.block * kStepBytes + tile.tap * pitch, tap = tile.tap;
  for (int left = tile.steps; left > 0; left -= kChunkFragments) {
    uint32_t b[kInFlight][kPairs][4];
    bool shortcut[kInFlight];
#pragma unroll
    for (int first = 0; first < kChunkFragments; first += kInFlight) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        shortcut[i] = kShortcut && tap + 1 == taps;
#pragma unroll
        for (int j = 0; j < kPairs; ++j)
          LoadMatrix4(b[i][j], work.rows[j] + offset + (shortcut[i] ? to_shortcut : 0));
        // the last chunk's empty steps stay where there is input
        const bool live = first + i + 1 < left, wraps = tap + 1 == taps;
        offset += live ? wraps ? to_block : pitch : 0;
        tap = live ? wraps ? 0 : tap + 1 : tap;
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int step = first + i;
        if constexpr (kShortcut) {
          if (shortcut[i]) {
            MmaStep<F, NT>(acc.shortcut[0], work.weights[step], b[i]);
            continue;
          }
        }
        MmaStep<F, NT>(acc.main[step % kSets][0], work.weights[step], b[i]);
      }
    }
    if (left > kChunkFragments) work.LoadWeights(ring);
    ring.Issue();
  }
#pragma unroll
  for (int set = 1; set < kSets; ++set)
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) acc.main[0][0][j][q] += acc.main[set][0][j][q];
}

// Multiplies and puts the warp's accumulators into shared memory.
template <Format F, int NT, bool kShortcut>
__device__ __forceinline__ void MmaAndPut(const ReaderLayer& layer, const WarpTile& tile,
                                          SmallBatchWork& work, ReaderWeightRing<1>& ring,
                                          float* accumulators) {
  Accumulators<1, NT, kShortcut> acc;
  const int lane = threadIdx.x & 31, pitch = layer.m_channels + 4, size = layer.n_tiles * 8 * pitch;
  float* part = accumulators + tile.part * size;
  float* shortcut = part + tile.parts * size;
  const int warp_m = tile.warp_m;
  MmaSmallBatch<F, NT, kShortcut>(acc, work, layer.shape, layer.layout.pitch, tile, ring);
  PutAccumulators<NT>(acc.main[0][0], part, pitch, warp_m, lane);
  if constexpr (kShortcut) PutAccumulators<NT>(acc.shortcut[0], shortcut, pitch, warp_m, lane);
}

template <Format F, bool kShortcut>
__device__ __forceinline__ void MmaAndPutByTiles(const ReaderLayer& layer, const WarpTile& tile,
                                                 SmallBatchWork& work, ReaderWeightRing<1>& ring,
                                                 float* accumulators) {
  switch (layer.n_tiles) {
    case 1:
      return MmaAndPut<F, 1, kShortcut>(layer, tile, work, ring, accumulators);
    case 2:
      return MmaAndPut<F, 2, kShortcut>(layer, tile, work, ring, accumulators);
    case 4:
      return MmaAndPut<F, 4, kShortcut>(layer, tile, work, ring, accumulators);
    default:
      return MmaAndPut<F, 8, kShortcut>(layer, tile, work, ring, accumulators);
  }
}

template <Format F>
__device__ __forceinline__ void RunSmallBatchLayer(CtaState& cta, const ReaderLayer& layer,
                                                   const WarpTile& tile,
                                                   const SmallBatchSource& source,
                                                   const SmallBatchOutput& output,
                                                   ReaderWeightRing<1>& ring, uint8_t* input,
                                                   float* accumulators) {
  if (!tile.has_work) return;
  SmallBatchWork work;
  bool prepared = false;
  const auto prepare = [&] {
    if (prepared) return;
    prepared = true;
    ClearSmallBatchHalo(output, input);
    work.Prepare(output, tile, ring, input);
  };
  FillSmallBatchInput<Storage<F>>(cta, source, input, prepare);
  prepare();
  __syncthreads();
  if (layer.shape.shortcut) {
    MmaAndPutByTiles<F, true>(layer, tile, work, ring, accumulators);
  } else {
    MmaAndPutByTiles<F, false>(layer, tile, work, ring, accumulators);
  }
  const int vectors = output.vectors, parts = output.parts, size = output.size;
  __syncthreads();
  for (int i = threadIdx.x; i < vectors;) {
    const float* from = accumulators + work.send.from;
    float4 v = Load4(from);
#pragma unroll
    for (int part = 1; part < kMmaWarps; ++part)
      if (part < parts) Add4(v, Load4(from + part * size));
    StoreTagged4(work.send.to, v, cta.epoch);
    i += kMmaThreads;
    if (i < vectors) work.send = MakeSend(output, i);
  }
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_SMALL_BATCH_CUH_
