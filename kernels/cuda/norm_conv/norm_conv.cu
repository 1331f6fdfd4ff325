// y[n][m] = bias[m] + sum over (channel, tap) of w x, for few positions n: bound by weight bytes.
//
// A cluster makes block_m out channels of block_rows rows; its CTAs split K, so each reads the
// whole norm groups it normalises. Weights stand in the order of the mma fragments: a lane copies
// exactly the 16 bytes it will multiply with, through a ring of its own (cp.async, no barrier), and
// starts before the layer before has finished. Warps split channels x taps where block_m has fewer
// than 8 tiles of 16. Partial sums are reduced in shared memory, first in the CTA, then in the
// cluster (DSMEM), always in the same order. Bytes: weights once per block_rows rows; activations
// once per block_m channels, from L2.

#include "kernels/cuda/norm_conv/norm_conv.cuh"
#include "kernels/cuda/norm_conv/norm_conv_plan.h"
#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 32 * kNormConvWarps;

// This warp's weights, prefetched: fragments of consecutive steps of MI tiles, `tile_stride` bytes
// apart. Both addresses include the lane: it reads back only what it copied itself.
template <int MI>
struct WeightPipeline {
  static constexpr int kSteps = kChunkFragments / MI;  // of a chunk
  static constexpr int kPending = kRingChunks - 1;
  const uint8_t* from;
  size_t tile_stride;
  uint32_t ring;
  int steps, chunks_in_ring, issued = 0, slot = 0, read_slot = 0;

  __device__ __forceinline__ uint32_t Read() {
    const uint32_t chunk = ring + read_slot * kChunkBytes;
    if (++read_slot == chunks_in_ring) read_slot = 0;
    return chunk;
  }

  __device__ __forceinline__ void Issue() {
    if (issued < steps) {
#pragma unroll
      for (int i = 0; i < kSteps; ++i)
#pragma unroll
        for (int m = 0; m < MI; ++m) {
          // steps beyond the last multiply by zero
          CopyAsync16(ring + slot * kChunkBytes + (i * MI + m) * kFragmentBytes,
                      from + m * tile_stride + i * kFragmentBytes, issued + i < steps);
        }
    }
    CommitCopies();
    from += kSteps * kFragmentBytes;
    issued += kSteps;
    if (++slot == chunks_in_ring) slot = 0;
  }
};

// Adds the accumulators of this CTA's warps into the first part.
__device__ __forceinline__ void AddWarpParts(float* sums, int size, int parts) {
  for (int i = threadIdx.x * 4; i < size; i += kThreads * 4) {
    float4 v = *reinterpret_cast<const float4*>(sums + i);
    for (int part = 1; part < parts; ++part) {
      const float4 w = *reinterpret_cast<const float4*>(sums + part * size + i);
      v.x += w.x, v.y += w.y, v.z += w.z, v.w += w.w;
    }
    *reinterpret_cast<float4*>(sums + i) = v;
  }
}

// Adds the cluster's partial sums of this CTA's part of the positions, and stores the output.
template <typename T>
__device__ __forceinline__ void WriteClusterSum(const NormConvKernelArgs& p, uint32_t sums,
                                                int pitch, int row0, int m0, int phase,
                                                const float* bias, void* out) {
  const NormConvShape& s = p.a.shape;
  const int quads_log2 = Log2(p.config.block_m / 4), split = p.config.split_k;
  const int count = min(p.config.block_rows, s.rows - row0) * s.out_length;
  for (int i = blockIdx.z * kThreads + threadIdx.x; i < count << quads_log2;
       i += kThreads * split) {
    const int n = i >> quads_log2, m = (i & ((1 << quads_log2) - 1)) * 4;
    const uint32_t at = sums + (n * pitch + m) * 4;
    float4 part[kMaxClusterCtas];
#pragma unroll
    for (int r = 0; r < kMaxClusterCtas; ++r)
      if (r < split) part[r] = LoadFromBlock(at, r);
    const float4 b = *reinterpret_cast<const float4*>(bias + m0 + m);
    float4 v = part[0];
#pragma unroll
    for (int r = 1; r < kMaxClusterCtas; ++r) {
      if (r < split) v.x += part[r].x, v.y += part[r].y, v.z += part[r].z, v.w += part[r].w;
    }
    Pack<T, 4> y;
    y.v[0] = FromFloat<T>(v.x + b.x), y.v[1] = FromFloat<T>(v.y + b.y);
    y.v[2] = FromFloat<T>(v.z + b.z), y.v[3] = FromFloat<T>(v.w + b.w);
    const size_t position = static_cast<size_t>(row0) * s.out_length + n;
    *reinterpret_cast<Pack<T, 4>*>(static_cast<T*>(out) + (position * s.phases + phase) * s.out_c +
                                   m0 + m) = y;
  }
}

// grid: (row tiles, out channel tiles x phases, split_k)
template <Format F, int NT, bool kShortcut>
__global__ void __launch_bounds__(kThreads, kShortcut&& NT == 16 ? 1 : 2)
    NormConvKernel(const NormConvKernelArgs p) {
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const NormConvShape& s = p.a.shape;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  constexpr int MI = WarpTiles(NT, kShortcut);
  const int m_log2 = Log2(p.config.block_m / (16 * MI)), parts = kNormConvWarps >> m_log2;
  const int m_tile = (warp & ((1 << m_log2) - 1)) * MI, part = warp >> m_log2;
  const int phase_tiles = static_cast<int>(gridDim.y) >> (s.phases - 1);
  const int phase = static_cast<int>(blockIdx.y) >= phase_tiles;
  const int m0 = (static_cast<int>(blockIdx.y) - phase * phase_tiles) * p.config.block_m;
  const int row0 = blockIdx.x * p.config.block_rows, c0 = blockIdx.z * p.slice_channels;

  constexpr int kStepChannels = kStepBytes / sizeof(T);
  const int parts_log2 = Log2(parts), taps = s.taps + kShortcut,
            blocks = p.slice_channels / kStepChannels;
  const int begin = (blocks * taps * part) >> parts_log2;
  const int end = (blocks * taps * (part + 1)) >> parts_log2;
  const size_t fragment =
      (static_cast<size_t>(phase * (s.out_c / 16) + m0 / 16 + m_tile) * (s.in_c / kStepChannels) +
       blockIdx.z * blocks) *
          taps +
      begin;
  const size_t tile_stride = size_t{1} * s.in_c / kStepChannels * taps * kFragmentBytes;
  WeightPipeline<MI> weights = {
      static_cast<const uint8_t*>(p.a.weight) + fragment * kFragmentBytes + lane * 16, tile_stride,
      SharedAddress(shared) + warp * p.ring_chunks * kChunkBytes + lane * 16, end - begin,
      p.ring_chunks};
  for (int i = 0; i < kRingChunks; ++i) weights.Issue();
  ReleaseSuccessor();
  WaitForPredecessor();
  LoadNormalizedInput<T>(p.a, shared + p.input_offset, p.layout, row0, p.config.block_rows, c0,
                         p.slice_channels, blockIdx.y == 0);
  __syncthreads();

  // this lane's row address in each pair of position tiles
  uint32_t rows[(NT + 1) / 2];
  const int positions = p.config.block_rows * s.out_length, length_log2 = Log2(s.out_length);
#pragma unroll
  for (int j = 0; j < (NT + 1) / 2; ++j) {
    const int n = min(j * 16 + (lane & 7) + ((lane >> 4) << 3), positions - 1);
    const int row =
        (n >> length_log2) * p.layout.period + (n & (s.out_length - 1)) * s.stride + phase;
    rows[j] =
        SharedAddress(shared) + p.input_offset + row * p.layout.pitch + ((lane >> 3) & 1) * 16;
  }
  Accumulators<MI, NT, kShortcut> acc;
  MmaAllSteps<F, MI, NT, kShortcut>(acc, weights, weights.steps, begin, rows, s, p.layout.pitch);
  WaitCopies<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(shared);
  const int pitch = p.config.block_m + 4, size = NT * 8 * pitch;
#pragma unroll
  for (int m = 0; m < MI; ++m)
    PutAccumulators<NT>(acc.main[0][m], sums + part * size, pitch, (m_tile + m) * 16, lane);
  if constexpr (kShortcut)
    PutAccumulators<NT>(acc.shortcut[0], sums + (parts + part) * size, pitch, m_tile * 16, lane);
  __syncthreads();
  AddWarpParts(sums, size, parts);
  if constexpr (kShortcut) AddWarpParts(sums + parts * size, size, parts);
  if (p.config.split_k > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
  }
  WriteClusterSum<T>(p, SharedAddress(sums), pitch, row0, m0, phase, p.a.bias, p.a.y);
  if constexpr (kShortcut)
    WriteClusterSum<T>(p, SharedAddress(sums + parts * size), pitch, row0, m0, phase,
                       p.a.shortcut_bias, p.a.shortcut_y);
  // the others may still read this CTA's partial sums
  if (p.config.split_k > 1) ClusterBarrierRelaxed();
}

template <Format F, int NT, bool kShortcut>
void LaunchTiles(const NormConvKernelArgs& p, size_t shared_bytes, cudaStream_t stream) {
  const auto kernel = NormConvKernel<F, NT, kShortcut>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxSharedBytesSm90);
  CheckCuda(allowed, "shared memory of norm_conv");
  const NormConvShape& s = p.a.shape;
  LaunchShape shape;
  shape.grid = dim3((s.rows + p.config.block_rows - 1) / p.config.block_rows,
                    s.out_c / p.config.block_m * s.phases, p.config.split_k);
  shape.block = dim3(kThreads);
  shape.shared_bytes = shared_bytes;
  shape.cluster_z = p.config.split_k;
  Launch(kernel, shape, stream, "norm_conv", p);
}

template <Format F, bool kShortcut>
void LaunchFormat(const NormConvKernelArgs& p, size_t shared_bytes, cudaStream_t stream) {
  switch (p.config.n_tiles) {
    case 1:
      return LaunchTiles<F, 1, kShortcut>(p, shared_bytes, stream);
    case 2:
      return LaunchTiles<F, 2, kShortcut>(p, shared_bytes, stream);
    case 4:
      return LaunchTiles<F, 4, kShortcut>(p, shared_bytes, stream);
    case 8:
      return LaunchTiles<F, 8, kShortcut>(p, shared_bytes, stream);
    default:
      return LaunchTiles<F, 16, kShortcut>(p, shared_bytes, stream);
  }
}

}  // namespace

void LaunchNormConv(Format format, const NormConvArgs& args, cudaStream_t stream) {
  size_t shared_bytes = 0;
  const NormConvKernelArgs p = PlanNormConv(format, args, &shared_bytes);
  const bool shortcut = args.shape.shortcut;
  switch (format) {
    case Format::kFp16:
      return shortcut ? LaunchFormat<Format::kFp16, true>(p, shared_bytes, stream)
                      : LaunchFormat<Format::kFp16, false>(p, shared_bytes, stream);
    case Format::kBf16:
      return shortcut ? LaunchFormat<Format::kBf16, true>(p, shared_bytes, stream)
                      : LaunchFormat<Format::kBf16, false>(p, shared_bytes, stream);
    default:
      throw Unsupported("norm_conv has fp16 and bf16 kernels alone");
  }
}

}  // namespace mjp
