#ifndef KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_
#define KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_

#include "kernels/cuda/megakernel/args.cuh"
#include "kernels/cuda/megakernel/evict_first.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/epilogue.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// One layer of the reader-epilogue kernel with two m16 tiles per warp: fill the input, multiply,
// send partial sums, and where owners run the epilogue, that.

namespace mjp::megakernel {

inline constexpr int kStepChannels = kStepBytes / 2;
inline constexpr int kCopyVectors = 8;  // loads of materialised activations in flight per thread

// What one warp multiplies in a layer, and where its weights are.
struct WarpTile {
  const uint8_t* weight;
  uint32_t tile_stride;     // bytes between tiles of 16 out channels
  int steps, begin;         // of the CTA's (channel block, tap) order
  int block, tap;           // of the first step
  int warp_m, part, parts;  // the CTA's out channels from warp_m on; its part of the steps
  int row0, k_slice;        // of the CTA
  int m0, out0, phase;      // m0: among the channels of all phases; out0: of its phase
  bool has_work;            // whether the CTA has a tile in this layer
};

__device__ __forceinline__ WarpTile MakeWarpTile(const ReaderLayer& s, int mi, int warp) {
  WarpTile t;
  const int m_blocks = s.shape.out_c * s.shape.phases / s.m_channels, cta = blockIdx.x;
  t.has_work = cta < m_blocks * s.split_k * (s.shape.rows / s.rows);
  t.k_slice = cta % s.split_k;
  t.m0 = cta / s.split_k % m_blocks * s.m_channels;
  t.row0 = cta / (s.split_k * m_blocks) * s.rows;
  t.phase = t.m0 >= s.shape.out_c;
  t.out0 = t.m0 - t.phase * s.shape.out_c;
  const int m_warps = s.m_channels / (16 * mi), taps = s.shape.taps + s.shape.shortcut;
  const int row_blocks = s.shape.in_c / kStepChannels, k_blocks = row_blocks / s.split_k;
  t.parts = kMmaWarps / m_warps;
  t.part = warp / m_warps;
  t.warp_m = warp % m_warps * mi * 16;
  t.begin = k_blocks * taps * t.part / t.parts;
  t.steps = t.has_work ? k_blocks * taps * (t.part + 1) / t.parts - t.begin : 0;
  t.block = t.begin / taps, t.tap = t.begin % taps;
  const int tile = (t.m0 + t.warp_m) / 16;
  const size_t fragment =
      (static_cast<size_t>(tile) * row_blocks + t.k_slice * k_blocks) * taps + t.begin;
  t.weight = static_cast<const uint8_t*>(s.weight) + fragment * kFragmentBytes;
  t.tile_stride = static_cast<uint32_t>(row_blocks * taps * kFragmentBytes);
  return t;
}

// This warp's weights of all layers, cyclic, prefetched through a ring in shared memory.
template <int MI>
struct ReaderWeightRing {
  static constexpr int kSteps = kChunkFragments / MI, kRing = RingChunks(MI);
  static constexpr int kPending = kRing - 1;
  const WarpTile* tiles;  // shared: of the layers, kMmaWarps apart
  int layer_count, lane;
  uint32_t ring;    // with the lane
  uint64_t policy;  // of L2: weights must not push the exchange buffers out
  int layer_index = -1, left = 0, slot = 0, read_slot = 0;
  const uint8_t* from = nullptr;
  uint32_t tile_stride = 0;

  __device__ __forceinline__ uint32_t Read() {
    const uint32_t chunk = ring + read_slot * kChunkBytes;
    if (++read_slot == kRing) read_slot = 0;
    return chunk;
  }
  __device__ __forceinline__ void Issue() {
    for (int tried = 0; left <= 0 && tried < layer_count; ++tried) {
      if (++layer_index == layer_count) layer_index = 0;
      const WarpTile& tile = tiles[layer_index * kMmaWarps];
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

// Copies materialised activations into this CTA's input, many loads in flight.
template <typename T>
__device__ __forceinline__ void CopyMaterialized(CtaState& cta, const EpilogueSource& s,
                                                 const ReaderLayer& layer, uint8_t* input, int row0,
                                                 int from, int channels) {
  const int vectors_log2 = Log2(channels / 4),
            row_log2 = vectors_log2 + Log2(layer.shape.in_length);
  const int count = layer.rows << row_log2, mask = (1 << vectors_log2) - 1;
  const int length = layer.shape.in_length;
  for (int base = threadIdx.x; base < count; base += kMmaThreads * kCopyVectors) {
    uint4 w[kCopyVectors] = {};
    for (int tries = 0;; ++tries) {
      uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kCopyVectors; ++i) {
        const int at = base + i * kMmaThreads;
        if (at < count)
          w[i] = LoadTagged4(
              s.values +
              ((static_cast<size_t>(row0) * length + (at >> vectors_log2)) * s.channels) + from +
              (at & mask) * 4);
      }
#pragma unroll
      for (int i = 0; i < kCopyVectors; ++i)
        if (base + i * kMmaThreads < count) missing |= Mismatch4(w[i], cta.epoch);
      if ((missing & 1) == 0 || cta.watchdog.TimedOut(tries)) break;
    }
#pragma unroll
    for (int i = 0; i < kCopyVectors; ++i) {
      const int at = base + i * kMmaThreads;
      if (at >= count) break;
      const int row = at >> row_log2, l = (at >> vectors_log2) & (length - 1);
      const float4 values = make_float4(Untag(w[i].x), Untag(w[i].y), Untag(w[i].z), Untag(w[i].w));
      *reinterpret_cast<Pack<T, 4>*>(
          input + (layer.layout.halo + row * layer.layout.period + l) * layer.layout.pitch +
          (at & mask) * 8) = PackFour<T>(values);
    }
  }
}

// Fills the input with this tile's K slice, zeros around each row; runs the epilogue of what is not
// materialised.
template <typename T>
__device__ __forceinline__ void FillInput(CtaState& cta, const ReaderLayer& layer,
                                          const WarpTile& tile, uint8_t* input) {
  const int channels = layer.k_slice, c0 = tile.k_slice * channels;
  const bool second = c0 >= layer.source[0].channels;
  const EpilogueSource& s = layer.source[second];
  const int from = second ? c0 - layer.source[0].channels : c0, length = layer.shape.in_length;
  const InputLayout& layout = layer.layout;
  const int vectors_log2 = Log2(channels / kPackChannels);
  for (int i = threadIdx.x; i < (layer.rows + 1) << vectors_log2; i += kMmaThreads) {
    const int r = (i >> vectors_log2) - 1, c = (i & ((1 << vectors_log2) - 1)) * kPackChannels;
    const int begin = r < 0 ? -layout.halo : length, end = r < 0 ? 0 : layout.period;
    for (int l = begin; l < end; ++l)
      *reinterpret_cast<uint4*>(
          input + (layout.halo + max(r, 0) * layout.period + l) * layout.pitch + c * 2) =
          make_uint4(0, 0, 0, 0);
  }
  if (s.values && !s.bias && !s.norm_scale)
    return CopyMaterialized<T>(cta, s, layer, input, tile.row0, from, channels);
  const int per_row_log2 = Log2(channels) - Log2(s.group_channels),
            tiles = layer.rows << per_row_log2;
  const int first = from >> Log2(s.group_channels);
  const ReductionGroup group =
      MakeReductionGroup(tiles, length * s.group_channels / 4, cta.moments);
  for (int i = group.index; i < tiles; i += group.count) {
    const int r = i >> per_row_log2, group_index = first + (i & ((1 << per_row_log2) - 1));
    NormalizeSource<T, kReaderMaxVectors, false>(
        cta, s, tile.row0 + r, group_index, length, group, tile.m0 == 0,
        [&](int l, int channel, const Pack<T, 4>& pack) {
          *reinterpret_cast<Pack<T, 4>*>(
              input + (layout.halo + r * layout.period + l) * layout.pitch + (channel - from) * 2) =
              pack;
        });
  }
}

// Adds the warps' accumulators and sends them as tagged partial sums.
__device__ __forceinline__ void SendPartialSums(const ReaderLayer& layer, const WarpTile& tile,
                                                const float* accumulators, float* to,
                                                uint32_t epoch) {
  const NormConvShape& s = layer.shape;
  const int quads_log2 = Log2(layer.m_channels / 4), pitch = layer.m_channels + 4;
  const int count = (layer.rows * s.out_length) << quads_log2, size = layer.n_tiles * 8 * pitch;
  const int length_log2 = Log2(s.out_length);
  for (int i = threadIdx.x; i < count; i += kMmaThreads) {
    const int n = i >> quads_log2, m = (i & ((1 << quads_log2) - 1)) * 4;
    float4 v = Load4(accumulators + n * pitch + m);
#pragma unroll
    for (int part = 1; part < kMmaWarps; ++part)
      if (part < tile.parts) Add4(v, Load4(accumulators + part * size + n * pitch + m));
    const size_t row =
        static_cast<size_t>(tile.row0 + (n >> length_log2)) * layer.split_k + tile.k_slice;
    const int position = (n & (s.out_length - 1)) * s.phases + tile.phase;
    StoreTagged4(to + (row * s.out_length * s.phases + position) * s.out_c + tile.out0 + m, v,
                 epoch);
  }
}

template <Format F, int MI, int NT, bool kShortcut>
__device__ __forceinline__ void MmaAndSend(const ReaderLayer& layer, const WarpTile& tile,
                                           ReaderWeightRing<MI>& weights, uint8_t* input,
                                           float* accumulators, uint32_t epoch) {
  const NormConvShape s = layer.shape;  // registers: it stands in shared memory
  const int lane = threadIdx.x & 31;
  uint32_t rows[(NT + 1) / 2];
  const int positions = layer.rows * s.out_length, length_log2 = Log2(s.out_length);
#pragma unroll
  for (int j = 0; j < (NT + 1) / 2; ++j) {
    const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), positions - 1);
    const int row =
        (n >> length_log2) * layer.layout.period + (n & (s.out_length - 1)) * s.stride + tile.phase;
    rows[j] = SharedAddress(input) + row * layer.layout.pitch + ((lane >> 3) & 1) * 16;
  }
  Accumulators<MI, NT, kShortcut> acc;
  MmaAllSteps<F, MI, NT, kShortcut>(acc, weights, tile.steps, tile.begin, rows, s,
                                    layer.layout.pitch);
  __syncthreads();  // many rows leave no room for both: accumulators take the input's place
  const int pitch = layer.m_channels + 4;
  float* part = accumulators + tile.part * layer.n_tiles * 8 * pitch;
#pragma unroll
  for (int m = 0; m < MI; ++m)
    PutAccumulators<NT>(acc.main[0][m], part, pitch, tile.warp_m + m * 16, lane);
  __syncthreads();
  SendPartialSums(layer, tile, accumulators, layer.partial_sums, epoch);
  if constexpr (kShortcut) {
    __syncthreads();
#pragma unroll
    for (int m = 0; m < MI; ++m)
      PutAccumulators<NT>(acc.shortcut[m], part, pitch, tile.warp_m + m * 16, lane);
    __syncthreads();
    SendPartialSums(layer, tile, accumulators, layer.shortcut_partial_sums, epoch);
  }
  __syncthreads();
}

template <Format F, int MI, bool kShortcut>
__device__ __forceinline__ void MmaByTiles(const ReaderLayer& layer, const WarpTile& tile,
                                           ReaderWeightRing<MI>& weights, uint8_t* input,
                                           float* accumulators, uint32_t epoch) {
  switch (layer.n_tiles) {
    case 1:
      return MmaAndSend<F, MI, 1, kShortcut>(layer, tile, weights, input, accumulators, epoch);
    case 2:
      return MmaAndSend<F, MI, 2, kShortcut>(layer, tile, weights, input, accumulators, epoch);
    case 4:
      return MmaAndSend<F, MI, 4, kShortcut>(layer, tile, weights, input, accumulators, epoch);
    default:
      return MmaAndSend<F, MI, 8, kShortcut>(layer, tile, weights, input, accumulators, epoch);
  }
}

// The epilogue of the output tiles that this CTA owns.
template <typename T>
__device__ __forceinline__ void RunOwnerEpilogue(CtaState& cta, const ReaderLayer& layer) {
  const EpilogueSource& s = layer.own;
  const int per_row = s.channels / s.group_channels,
            length = layer.shape.out_length * layer.shape.phases;
  const ReductionGroup group = MakeReductionGroup(1, length * s.group_channels / 4, cta.moments);
  if (group.index > 0) return;
  for (int i = blockIdx.x; i < cta.a.rows * per_row; i += gridDim.x) {
    NormalizeSource<T, kOwnerMaxVectors, true>(cta, s, i / per_row, i % per_row, length, group,
                                               true, [](int, int, const Pack<T, 4>&) {});
    if (group.warps > 1) group.Barrier();  // the moments are free again
  }
}

template <Format F, int MI>
__device__ __forceinline__ void RunReaderLayer(CtaState& cta, const ReaderLayer& layer,
                                               const WarpTile& tile, ReaderWeightRing<MI>& weights,
                                               uint8_t* input, float* accumulators) {
  using T = Storage<F>;
  if (tile.has_work) {
    FillInput<T>(cta, layer, tile, input);
    __syncthreads();
    if (layer.shape.shortcut) {
      MmaByTiles<F, MI, true>(layer, tile, weights, input, accumulators, cta.epoch);
    } else {
      MmaByTiles<F, MI, false>(layer, tile, weights, input, accumulators, cta.epoch);
    }
  }
  if (layer.own.values) RunOwnerEpilogue<T>(cta, layer);
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_READER_EPILOGUE_LAYER_CUH_
