// A block makes 16 rows of one head for each of its warps, with the softmax of FlashAttention (Dao
// et al. 2022): keys and values come in tiles of 64 through stages of shared memory (cp.async), two
// of them, or four where few blocks have the multiprocessors for themselves; scores and sums stay
// in registers as float32, and a new largest score scales what was summed before. Scores become
// operands of the second product where they are: the layout of one product's result is that of the
// next one's left side. Rows of shared memory are an odd number of 16 bytes apart, so that ldmatrix
// meets no bank twice. Heads are filled up with zeros to 32, 64 or 128. Bytes from L2: keys and
// values once for each block. Bound by latency for few rows.

#include <algorithm>

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/transformer/attention_mma.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"

namespace mjp {
namespace {

constexpr int kKeys = 64;  // of a tile

template <int kHead, int kWarps, int kRing>
struct AttentionTile {
  static constexpr int kThreads = 32 * kWarps, kRows = 16 * kWarps, kStages = kRing;
  static constexpr int kPitch = kHead * 2 + 16;  // bytes
  static constexpr int kStageBytes = 2 * kKeys * kPitch;
  static constexpr int kSharedBytes = kStages * kStageBytes + kRows * kPitch;
};

// Copies `count` rows of a head from row `first` on; zeros where there is no such row or column.
template <typename T, typename C, int kHead>
__device__ __forceinline__ void CopyRows(const TokenAttentionArgs& a, const DeviceRows& rows,
                                         int first, int rows_there, int count, uint32_t to) {
  constexpr int kVectors = kHead / 8;
  const T* head = static_cast<const T*>(rows.data) + blockIdx.z * rows.batch +
                  static_cast<int64_t>(blockIdx.y) * a.head_size;
  for (int i = threadIdx.x; i < count * kVectors; i += C::kThreads) {
    const int row = i / kVectors, vector = i % kVectors;
    const bool there = first + row < rows_there && vector * 8 < a.head_size;
    const T* from = there ? head + (first + row) * rows.pitch + vector * 8 : head;
    CopyAsync16(to + row * C::kPitch + vector * 16, from, there);
  }
}

// Turns the pairs of `count` rows at `tile`, which stand at positions from `first` on.
template <typename T, typename C>
__device__ __forceinline__ void RotateRows(const TokenAttentionArgs& a, uint8_t* tile, int first,
                                           int rows_there, int count) {
  const int half = a.head_size / 2;
  for (int i = threadIdx.x; i < count * half; i += C::kThreads) {
    const int row = i / half, pair = i % half, position = first + row;
    if (position >= rows_there) break;
    T* at = reinterpret_cast<T*>(tile + row * C::kPitch) + pair;
    const float cosine = a.cosines[position * half + pair], sine = a.sines[position * half + pair];
    const float x = ToFloat(at[0]), y = ToFloat(at[half]);
    at[0] = FromFloat<T>(x * cosine - y * sine);
    at[half] = FromFloat<T>(y * cosine + x * sine);
  }
}

// A warp's softmax under way: of rows lane / 4 and lane / 4 + 8.
template <int kHead>
struct RowSums {
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  float out[kHead / 8][4] = {};
};

// Scores to weights: exp2 of what they are below the largest, and what was summed scaled likewise.
template <int kHead>
__device__ __forceinline__ void WeighScores(float (&scores)[kKeys / 8][4], RowSums<kHead>& sums,
                                            float scale, int keys_left, int lane) {
  float largest[2] = {sums.largest[0], sums.largest[1]};
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const bool there = j * 8 + 2 * (lane & 3) + (q & 1) < keys_left;
      scores[j][q] = there ? scores[j][q] * scale : -INFINITY;
      largest[q >> 1] = fmaxf(largest[q >> 1], scores[j][q]);
    }
  }
  float kept[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    largest[r] = QuadMax(largest[r]);
    kept[r] = exp2f(sums.largest[r] - largest[r]);
    sums.largest[r] = largest[r];
    sums.total[r] *= kept[r];
  }
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      scores[j][q] = exp2f(scores[j][q] - largest[q >> 1]);
      sums.total[q >> 1] += scores[j][q];
    }
  }
#pragma unroll
  for (int j = 0; j < kHead / 8; ++j) {
#pragma unroll
    for (int q = 0; q < 4; ++q) sums.out[j][q] *= kept[q >> 1];
  }
}

// grid: (queries / rows of a block, heads, sequences)
template <Format F, int kHead, int kWarps, int kRing>
__global__ void __launch_bounds__(32 * kWarps) AttentionMmaKernel(const TokenAttentionArgs a) {
  using C = AttentionTile<kHead, kWarps, kRing>;
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, row0 = blockIdx.x * C::kRows;
  uint8_t* const queries = shared + kRing * C::kStageBytes;
  const auto key_tile = [&](int tile) { return shared + tile % kRing * C::kStageBytes; };
  const auto load = [&](int tile) {
    const uint32_t to = SharedAddress(key_tile(tile));
    CopyRows<T, C, kHead>(a, a.k, tile * kKeys, a.keys, kKeys, to);
    CopyRows<T, C, kHead>(a, a.v, tile * kKeys, a.keys, kKeys, to + kKeys * C::kPitch);
  };
  ReleaseSuccessor();
  WaitForPredecessor();
  const int tiles = (a.keys + kKeys - 1) / kKeys;
  CopyRows<T, C, kHead>(a, a.q, row0, a.queries, C::kRows, SharedAddress(queries));
  for (int tile = 0; tile < kRing - 1; ++tile) {
    if (tile < tiles) load(tile);
    CommitCopies();
  }

  const float scale = kLog2E / sqrtf(static_cast<float>(a.head_size));
  uint32_t q[kHead / 16][4];
  RowSums<kHead> sums;
  for (int tile = 0; tile < tiles; ++tile) {
    WaitCopies<kRing - 2>();
    __syncthreads();  // the tile is there, and all are done with the one before
    if (tile + kRing - 1 < tiles) load(tile + kRing - 1);
    CommitCopies();
    if (a.cosines != nullptr) {
      if (tile == 0) RotateRows<T, C>(a, queries, row0, a.queries, C::kRows);
      RotateRows<T, C>(a, key_tile(tile), tile * kKeys, a.keys, kKeys);
      __syncthreads();
    }
    if (tile == 0) {
      const uint32_t from = SharedAddress(queries) + (warp * 16 + (lane & 15)) * C::kPitch;
#pragma unroll
      for (int step = 0; step < kHead / 16; ++step)
        LoadMatrix4(q[step], from + step * 32 + (lane >> 4) * 16);
    }
    const uint32_t keys = SharedAddress(key_tile(tile)), values = keys + kKeys * C::kPitch;
    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kHead / 16; ++step) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; j += 2) {
        uint32_t k[4];
        const int row = j * 8 + (lane & 7) + ((lane >> 4) << 3);
        LoadMatrix4(k, keys + row * C::kPitch + step * 32 + ((lane >> 3) & 1) * 16);
        MultiplyAccumulate<F>(scores[j], q[step], k[0], k[1]);
        MultiplyAccumulate<F>(scores[j + 1], q[step], k[2], k[3]);
      }
    }
    WeighScores<kHead>(scores, sums, scale, a.keys - tile * kKeys, lane);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t weights[4];
      ToOperand<T>(weights, scores[2 * step], scores[2 * step + 1]);
      const int row = step * 16 + (lane & 15);
#pragma unroll
      for (int j = 0; j < kHead / 8; j += 2) {
        uint32_t v[4];
        LoadTransposed4(v, values + row * C::kPitch + j * 16 + (lane >> 4) * 16);
        MultiplyAccumulate<F>(sums.out[j], weights, v[0], v[1]);
        MultiplyAccumulate<F>(sums.out[j + 1], weights, v[2], v[3]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = QuadSum(sums.total[r]);
    const int query = row0 + warp * 16 + (lane >> 2) + r * 8;
    if (query >= a.queries) continue;
    T* out = static_cast<T*>(a.out) +
             (static_cast<size_t>(blockIdx.z) * a.queries + query) * a.heads * a.head_size +
             blockIdx.y * a.head_size + 2 * (lane & 3);
#pragma unroll
    for (int j = 0; j < kHead / 8; ++j) {
      if (j * 8 >= a.head_size) break;
      *reinterpret_cast<uint32_t*>(out + j * 8) =
          PackTwo(T{}, sums.out[j][2 * r] / total, sums.out[j][2 * r + 1] / total);
    }
  }
}

template <Format F, int kHead, int kWarps, int kRing>
void LaunchTile(const TokenAttentionArgs& a, cudaStream_t stream) {
  using C = AttentionTile<kHead, kWarps, kRing>;
  const auto kernel = AttentionMmaKernel<F, kHead, kWarps, kRing>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSharedBytes);
  CheckCuda(allowed, "shared memory of the attention");
  LaunchShape shape;
  shape.grid = dim3((a.queries + C::kRows - 1) / C::kRows, a.heads, a.sequences);
  shape.block = dim3(C::kThreads);
  shape.shared_bytes = C::kSharedBytes;
  Launch(kernel, shape, stream, "attention", a);
}

template <Format F, int kHead>
void LaunchHead(const TokenAttentionArgs& a, cudaStream_t stream) {
  // a constant, and not the GPU's multiprocessors; the bits do not depend on it
  constexpr int kManyBlocks = 256;
  const int blocks = (a.queries + 63) / 64 * a.heads * a.sequences;
  if (a.queries > 32 && blocks >= kManyBlocks) return LaunchTile<F, kHead, 4, 2>(a, stream);
  if (a.keys > 2 * kKeys && kHead <= 64) return LaunchTile<F, kHead, 2, 4>(a, stream);
  LaunchTile<F, kHead, 2, 2>(a, stream);
}

template <Format F>
void LaunchFormat(const TokenAttentionArgs& a, cudaStream_t stream) {
  if (a.head_size <= 32) return LaunchHead<F, 32>(a, stream);
  if (a.head_size <= 64) return LaunchHead<F, 64>(a, stream);
  LaunchHead<F, 128>(a, stream);
}

}  // namespace

void LaunchAttentionMma(Format format, const TokenAttentionArgs& args, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, stream);
  LaunchFormat<Format::kBf16>(args, stream);
}

}  // namespace mjp
