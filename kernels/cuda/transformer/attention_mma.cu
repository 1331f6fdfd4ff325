// A block makes 16 rows of one head for each of its warps, with the softmax of FlashAttention (Dao
// et al. 2022): keys and values come in tiles through stages of shared memory (cp.async); scores
// and sums stay in registers as float32, and a new largest score scales what was summed before.
// Scores become operands of the second product where they are: the layout of one product's result
// is that of the next one's left side. Where few blocks have the multiprocessors for themselves,
// groups of warps share the keys of each tile, and their sums are joined at the end in the order of
// the groups, as FlashDecoding does (Dao et al. 2023); each group ends some of the columns. Values
// are divided by one reciprocal: a launch runs this code once, and fetching it takes time. Rows of
// shared memory are an odd number of 16 bytes apart, so that ldmatrix meets no bank twice. Heads
// are filled up with zeros to 32, 64 or 128. Bytes from L2: keys and values once for each block.
// Bound by latency for few rows.

#include <algorithm>

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"
#include "kernels/cuda/transformer/attention_mma.cuh"
#include "kernels/cuda/transformer/mma_attention_parts.cuh"

namespace mjp {
namespace {

// kWarps x 16 rows, by kGroups of such warps, each of which has kKeysEach keys of a tile.
template <int kHeadSize, int kWarps, int kGroupCount, int kKeysEach, int kStageCount>
struct AttentionTile {
  static constexpr int kHead = kHeadSize, kRowWarps = kWarps, kRows = 16 * kWarps;
  static constexpr int kGroups = kGroupCount, kGroupKeys = kKeysEach, kKeys = kGroups * kGroupKeys;
  static constexpr int kStages = kStageCount;  // 1: one tile has all keys
  static constexpr int kThreads = 32 * kWarps * kGroups;
  static constexpr int kFit = kThreads == 256 ? 2 : 0;  // blocks on a multiprocessor; 0: any
  static constexpr int kPitch = kHead * 2 + 16;         // bytes
  static constexpr int kStageBytes = 2 * kKeys * kPitch;
  static constexpr int kSharedBytes = kStages * kStageBytes + kRows * kPitch;
  // of a lane, where groups join them: sums, the largest score and the total of both rows
  static constexpr int kSums = kHead / 8 * 4, kShared = kSums + 4;
  static constexpr int kSumsEach = kSums / kGroups;
  static_assert(kGroups * kRowWarps * 32 * kShared * 4 <= kStages * kStageBytes || kGroups == 1);
  static_assert(kSumsEach * kGroups == kSums);
};

// Copies `count` rows of a head from row `first` on; zeros where there is no such row or column.
template <typename T, typename C>
__device__ __forceinline__ void CopyRows(const TokenAttentionArgs& a, const DeviceRows& rows,
                                         int first, int rows_there, int count, uint32_t to) {
  constexpr int kVectors = C::kHead / 8;
  const T* head = static_cast<const T*>(rows.data) + blockIdx.z * rows.batch +
                  static_cast<int64_t>(blockIdx.y) * a.head_size;
  for (int i = threadIdx.x; i < count * kVectors; i += C::kThreads) {
    const int row = i / kVectors, vector = i % kVectors;
    const bool there = first + row < rows_there && vector * 8 < a.head_size;
    const T* from = there ? head + (first + row) * rows.pitch + vector * 8 : head;
    CopyAsync16(to + row * C::kPitch + vector * 16, from, there);
  }
}

// Turns the pairs of `count` rows at `tile`, halves of a head apart, which stand at positions from
// `first` on. Not inlined: few launches run it.
template <typename T, typename C>
__device__ __noinline__ void RotateRows(const float* cosines, const float* sines, int half,
                                        uint8_t* tile, int first, int rows_there, int count) {
  for (int i = threadIdx.x; i < count * half; i += C::kThreads) {
    const int row = i / half, pair = i % half, position = first + row;
    if (position >= rows_there) break;
    T* at = reinterpret_cast<T*>(tile + row * C::kPitch) + pair;
    const float cosine = cosines[position * half + pair], sine = sines[position * half + pair];
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
template <int kHead, int kTiles>
__device__ __forceinline__ void WeighScores(float (&scores)[kTiles][4], RowSums<kHead>& sums,
                                            float scale, int keys_left) {
  float largest[2];
  FindLargest(largest, scores, keys_left);
  float kept[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    largest[r] = fmaxf(sums.largest[r], QuadMax(largest[r]) * scale);
    kept[r] = FastExp2(sums.largest[r] - largest[r]);
    sums.largest[r] = largest[r];
    sums.total[r] *= kept[r];
  }
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      scores[j][q] = FastExp2(fmaf(scores[j][q], scale, -largest[q >> 1]));
      sums.total[q >> 1] += scores[j][q];
    }
  }
#pragma unroll
  for (int j = 0; j < kHead / 8; ++j) {
#pragma unroll
    for (int q = 0; q < 4; ++q) sums.out[j][q] *= kept[q >> 1];
  }
}

// A warp's queries against its group's keys of a tile.
template <Format F, typename C>
__device__ __forceinline__ void ScoreKeys(float (&scores)[C::kGroupKeys / 8][4],
                                          const uint32_t (&q)[C::kHead / 16][4], uint32_t keys,
                                          int lane) {
#pragma unroll
  for (int step = 0; step < C::kHead / 16; ++step) {
#pragma unroll
    for (int j = 0; j < C::kGroupKeys / 8; j += 2) {
      uint32_t k[4];
      const int row = j * 8 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(k, keys + row * C::kPitch + step * 32 + ((lane >> 3) & 1) * 16);
      MultiplyAccumulate<F>(scores[j], q[step], k[0], k[1]);
      MultiplyAccumulate<F>(scores[j + 1], q[step], k[2], k[3]);
    }
  }
}

// Adds the values of the group's keys, by the scores' weights.
template <Format F, typename C>
__device__ __forceinline__ void AddValues(RowSums<C::kHead>& sums,
                                          const float (&scores)[C::kGroupKeys / 8][4],
                                          uint32_t values, int lane) {
#pragma unroll
  for (int step = 0; step < C::kGroupKeys / 16; ++step) {
    uint32_t weights[4];
    ToOperand<Storage<F>>(weights, scores[2 * step], scores[2 * step + 1]);
    const int row = step * 16 + (lane & 15);
#pragma unroll
    for (int j = 0; j < C::kHead / 8; j += 2) {
      uint32_t v[4];
      LoadTransposed4(v, values + row * C::kPitch + j * 16 + (lane >> 4) * 16);
      MultiplyAccumulate<F>(sums.out[j], weights, v[0], v[1]);
      MultiplyAccumulate<F>(sums.out[j + 1], weights, v[2], v[3]);
    }
  }
}

// The rows that a lane stores: lane / 4 and lane / 4 + 8 of the warp's 16. Calls
// value(first sum of a pair, row of both) for sums [begin, end), and stores two columns at a time.
template <typename T, typename C, typename Value>
__device__ __forceinline__ void StoreSums(const TokenAttentionArgs& a, int row0, int begin,
                                          int lane, const Value& value) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = row0 + (lane >> 2) + r * 8;
    if (query >= a.queries) continue;
    T* out = static_cast<T*>(a.out) +
             (static_cast<size_t>(blockIdx.z) * a.queries + query) * a.heads * a.head_size +
             blockIdx.y * a.head_size + 2 * (lane & 3);
#pragma unroll
    for (int i = 0; i < C::kSumsEach / 4; ++i) {
      const int j = begin / 4 + i;
      if (j * 8 >= a.head_size) break;
      *reinterpret_cast<uint32_t*>(out + j * 8) =
          PackTwo(T{}, value(4 * i + 2 * r, r), value(4 * i + 2 * r + 1, r));
    }
  }
}

// Joins the groups' sums of the same rows, in the order of the groups; each group ends some of the
// columns. All threads call it.
template <typename T, typename C>
__device__ __forceinline__ void JoinGroups(const TokenAttentionArgs& a,
                                           const RowSums<C::kHead>& sums, float* shared, int group,
                                           int row_warp, int row0, int lane) {
  // a lane's values stand 32 apart: no bank is met twice
  const auto at = [&](int of_group) {
    return shared + (of_group * C::kRowWarps + row_warp) * 32 * C::kShared + lane;
  };
  __syncthreads();  // nobody reads keys or values any more
  float* const to = at(group);
#pragma unroll
  for (int i = 0; i < C::kSums; ++i) to[i * 32] = sums.out[i / 4][i % 4];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    to[(C::kSums + r) * 32] = sums.largest[r];
    to[(C::kSums + 2 + r) * 32] = QuadSum(sums.total[r]);
  }
  __syncthreads();
  float largest[2], total[2] = {0, 0}, sum[C::kSumsEach] = {};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    largest[r] = at(0)[(C::kSums + r) * 32];
#pragma unroll
    for (int g = 1; g < C::kGroups; ++g) largest[r] = fmaxf(largest[r], at(g)[(C::kSums + r) * 32]);
  }
  const int begin = group * C::kSumsEach;
#pragma unroll
  for (int g = 0; g < C::kGroups; ++g) {
    const float* const from = at(g);
    float kept[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      kept[r] = FastExp2(from[(C::kSums + r) * 32] - largest[r]);
      total[r] += from[(C::kSums + 2 + r) * 32] * kept[r];
    }
#pragma unroll
    for (int i = 0; i < C::kSumsEach; ++i) sum[i] += from[(begin + i) * 32] * kept[i % 4 / 2];
  }
  const float scale[2] = {FastReciprocal(total[0]), FastReciprocal(total[1])};
  StoreSums<T, C>(a, row0, begin, lane, [&](int i, int r) { return sum[i] * scale[r]; });
}

template <typename T, typename C>
__device__ __forceinline__ void EndRows(const TokenAttentionArgs& a, const RowSums<C::kHead>& sums,
                                        float* shared, int group, int row_warp, int row0,
                                        int lane) {
  if constexpr (C::kGroups > 1)
    return JoinGroups<T, C>(a, sums, shared, group, row_warp, row0, lane);
  const float scale[2] = {FastReciprocal(QuadSum(sums.total[0])),
                          FastReciprocal(QuadSum(sums.total[1]))};
  StoreSums<T, C>(a, row0, 0, lane,
                  [&](int i, int r) { return sums.out[i / 4][i % 4] * scale[r]; });
}

// grid: (queries / rows of a block, heads, sequences)
template <Format F, typename C>
__global__ void __launch_bounds__(C::kThreads, C::kFit)
    AttentionMmaKernel(const TokenAttentionArgs a) {
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, row0 = blockIdx.x * C::kRows;
  const int group = warp / C::kRowWarps, row_warp = warp % C::kRowWarps;
  uint8_t* const queries = shared + C::kStages * C::kStageBytes;
  const auto key_tile = [&](int tile) { return shared + tile % C::kStages * C::kStageBytes; };
  const auto load_keys = [&](int tile) {
    CopyRows<T, C>(a, a.k, tile * C::kKeys, a.keys, C::kKeys, SharedAddress(key_tile(tile)));
  };
  const auto load_values = [&](int tile) {
    CopyRows<T, C>(a, a.v, tile * C::kKeys, a.keys, C::kKeys,
                   SharedAddress(key_tile(tile)) + C::kKeys * C::kPitch);
    CommitCopies();
  };
  ReleaseSuccessor();
  WaitForPredecessor();
  const int tiles = (a.keys + C::kKeys - 1) / C::kKeys;
  CopyRows<T, C>(a, a.q, row0, a.queries, C::kRows, SharedAddress(queries));
  load_keys(0);
  if (C::kStages == 1) CommitCopies();  // scores need not wait for values
  load_values(0);

  const float scale = kLog2E * rsqrtf(static_cast<float>(a.head_size));
  uint32_t q[C::kHead / 16][4];
  RowSums<C::kHead> sums;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile > 0) __syncthreads();  // all are done with the tile before
    if constexpr (C::kStages > 1) {
      if (tile + 1 < tiles)
        load_keys(tile + 1), load_values(tile + 1);
      else
        CommitCopies();
    }
    WaitCopies<1>();
    __syncthreads();  // the tile's keys are there
    if (a.cosines != nullptr) {
      const auto rotate = [&](uint8_t* rows, int first, int rows_there, int count) {
        RotateRows<T, C>(a.cosines, a.sines, a.head_size / 2, rows, first, rows_there, count);
      };
      if (tile == 0) rotate(queries, row0, a.queries, C::kRows);
      rotate(key_tile(tile), tile * C::kKeys, a.keys, C::kKeys);
      __syncthreads();
    }
    if (tile == 0) {
      const uint32_t from = SharedAddress(queries) + (row_warp * 16 + (lane & 15)) * C::kPitch;
#pragma unroll
      for (int step = 0; step < C::kHead / 16; ++step)
        LoadMatrix4(q[step], from + step * 32 + (lane >> 4) * 16);
    }
    const uint32_t keys = SharedAddress(key_tile(tile)) + group * C::kGroupKeys * C::kPitch;
    const int left = a.keys - tile * C::kKeys - group * C::kGroupKeys;
    float scores[C::kGroupKeys / 8][4] = {};
    if (left > 0) {
      ScoreKeys<F, C>(scores, q, keys, lane);
      WeighScores<C::kHead>(scores, sums, scale, left);
    }
    if constexpr (C::kStages == 1) {
      WaitCopies<0>();
      __syncthreads();  // the values are there
    }
    if (left > 0) AddValues<F, C>(sums, scores, keys + C::kKeys * C::kPitch, lane);
  }
  EndRows<T, C>(a, sums, reinterpret_cast<float*>(shared), group, row_warp, row0 + row_warp * 16,
                lane);
}

template <Format F, typename C>
void LaunchTile(const TokenAttentionArgs& a, cudaStream_t stream) {
  const auto kernel = AttentionMmaKernel<F, C>;
  AllowShared(kernel, C::kSharedBytes, "shared memory of the attention");
  LaunchShape shape;
  shape.grid = dim3((a.queries + C::kRows - 1) / C::kRows, a.heads, a.sequences);
  shape.block = dim3(C::kThreads);
  shape.shared_bytes = C::kSharedBytes;
  Launch(kernel, shape, stream, "attention", a);
}

template <Format F, int kHead>
void LaunchHead(const TokenAttentionArgs& a, cudaStream_t stream) {
  // constants, and not the GPU's multiprocessors: groups set the order of the sums
  constexpr int kManyBlocks = 256, kFewKeys = 128;
  const int blocks = (a.queries + 63) / 64 * a.heads * a.sequences;
  if (a.queries > 32 && blocks >= kManyBlocks)
    return LaunchTile<F, AttentionTile<kHead, 4, 1, 64, 2>>(a, stream);
  if constexpr (kHead == 64) {
    // a sequence's keys in one tile, where two blocks fit a Hopper's multiprocessor
    if (a.keys > 320) return LaunchTile<F, AttentionTile<kHead, 2, 4, 32, 2>>(a, stream);
    if (a.keys > 256) return LaunchTile<F, AttentionTile<kHead, 1, 4, 80, 1>>(a, stream);
    if (a.keys > kFewKeys) return LaunchTile<F, AttentionTile<kHead, 1, 4, 64, 1>>(a, stream);
  }
  LaunchTile<F, AttentionTile<kHead, 2, 1, 64, 2>>(a, stream);
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
