// y = act(GN(sum_k w x) + residual) for few pictures: what costs is the number of launches.
//
// A cluster makes block_m out channels, whole groups of them, of one picture. Its blocks share the
// picture's positions (slices) and, where those are few, k (split_k). The four warps of a block
// each take one of the four steps of a stage of 64 k, for all channels and positions, so a fragment
// is read from shared memory by one warp; their sums, then those of the blocks that share a
// slice, are added in the order of the ranks. Each block then owns a share of the positions: mean
// and squared differences of the share, combined over the cluster in the order of the ranks (Chan),
// give the group's.
// Bytes: weights once per slice, activations once per block_m channels, from L2.

#include <algorithm>

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/norm/conv_group_norm.cuh"
#include "kernels/cuda/norm/conv_group_norm_resident.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 4;  // one for each step of a stage
constexpr int kThreads = 32 * kWarps;
constexpr int kRowsPerPass = kThreads / kStageVectors;
constexpr int kPerVector = 8;  // elements of 16 bits
constexpr int kStages = 4;
constexpr int kMostBlocks = 8;  // of a portable cluster
constexpr int kMostGroups = 16;
constexpr float kEpsilon = 1e-5f;

struct ConvGroupNormKernelArgs {
  ConvGroupNormArgs a;
  ConvGroupNormConfig config;
  int k_tiles;         // stages of the whole k
  int slice;           // positions of a block's slice, the last may have fewer
  int group_channels;  // 4, 8 or 16
};

template <int BM, int BN>
struct Tile {
  static constexpr int kMi = BM / 16, kNi = BN / 8;
  static constexpr int kARows = (BM + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr int kBRows = (BN + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr int kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kPitch = BM + 4;            // floats of a position's sums
  static constexpr int kPartFloats = BN * kPitch;  // of one warp's sums
  static constexpr size_t kSharedBytes =
      std::max<size_t>(size_t{kStages} * kStageBytes, sizeof(float) * kWarps * kPartFloats);
  static_assert(BM % 16 == 0 && BN % 16 == 0);
};

// Sum over the threads whose columns of 4 channels are of one group, the same bits in all of them.
// `partial` holds kWarps x kMostGroups floats.
template <int BM>
__device__ __forceinline__ float GroupSum(float x, int group_columns, int group, float* partial) {
  constexpr int kColumns = BM / 4;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int mask = 16; mask > 0; mask >>= 1) {
    if (mask < group_columns || mask >= kColumns) x += __shfl_xor_sync(0xffffffffu, x, mask);
  }
  __syncthreads();
  if (lane < kColumns && lane % group_columns == 0) partial[warp * kMostGroups + group] = x;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < kWarps; ++w) sum += partial[w * kMostGroups + group];
  return sum;
}

// Positions [begin, end) of a slice, whose epilogue block `rank` of the cluster runs.
struct PositionRange {
  int begin, end;
};
__device__ __forceinline__ PositionRange PositionsOf(int rank, const ConvGroupNormKernelArgs& p) {
  const ConvShape& s = p.a.conv.shape;
  const int split = p.config.split_k, part = rank % split;
  const int count = min(p.slice, s.out_h * s.out_w - rank / split * p.slice);
  return {count * part / split, count * (part + 1) / split};
}

// Mean and 1 / standard deviation of a group from the moments of the cluster's shares: mean and sum
// of squared differences from it.
__device__ __forceinline__ float2 CombineMoments(const ConvGroupNormKernelArgs& p,
                                                 uint32_t moments) {
  const int blocks = p.config.slices * p.config.split_k;
  float4 share[kMostBlocks];
  float counts[kMostBlocks], mean = 0.0f, squares = 0.0f;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) {
    if (r >= blocks) break;
    const PositionRange positions = PositionsOf(r, p);
    counts[r] = static_cast<float>((positions.end - positions.begin) * p.group_channels);
    share[r] = LoadFromBlock(moments, r);
    mean += counts[r] * share[r].x;
  }
  const ConvShape& s = p.a.conv.shape;
  const float count = static_cast<float>(s.out_h * s.out_w * p.group_channels);
  mean /= count;
#pragma unroll
  for (int r = 0; r < kMostBlocks; ++r) {
    if (r >= blocks) break;
    const float difference = share[r].x - mean;
    squares += share[r].y + counts[r] * difference * difference;
  }
  return make_float2(mean, 1.0f / sqrtf(squares / count + kEpsilon));
}

// Adds up what the `split` blocks of a slice have at `own`, and the bias.
__device__ __forceinline__ float4 AddBlocks(const float4* own, int slice, int split,
                                            const ConvArgs& a, int channel) {
  float4 v = *own;
  if (split > 1) {
    const uint32_t at = SharedAddress(own);
    v = LoadFromBlock(at, slice * split);
    for (int r = 1; r < split; ++r) {
      const float4 u = LoadFromBlock(at, slice * split + r);
      v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
    }
  }
  if (a.bias) {
    const float4 u = *reinterpret_cast<const float4*>(a.bias + channel);
    v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
  }
  return v;
}

// Adds up the sums of the warps, in the first one's place; a slice of several blocks waits for
// them.
template <int kPartFloats>
__device__ __forceinline__ void AddWarps(float* sums, int split) {
  for (int i = threadIdx.x * 4; i < kPartFloats; i += kThreads * 4) {
    float4 v = *reinterpret_cast<const float4*>(sums + i);
    for (int w = 1; w < kWarps; ++w) {
      const float4 u = *reinterpret_cast<const float4*>(sums + w * kPartFloats + i);
      v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
    }
    *reinterpret_cast<float4*>(sums + i) = v;
  }
  split > 1 ? ClusterBarrier() : __syncthreads();
}

// Sum of the squares of what this thread's positions, every `step` from `first` on, are from
// `mean`.
__device__ __forceinline__ float SquaresFrom(const float4* own, int first, int end, int step,
                                             int pitch, float mean) {
  float squares = 0.0f;
  for (int row = first; row < end; row += step) {
    const float4 v = own[row * pitch];
    const float x = v.x - mean, y = v.y - mean, z = v.z - mean, w = v.w - mean;
    squares += (x * x + y * y) + (z * z + w * w);
  }
  return squares;
}

// What an output is multiplied with, and what is added then, for four channels.
struct ChannelAffine {
  float scale[4], shift[4];
};
__device__ __forceinline__ ChannelAffine LoadAffine(const ConvGroupNormArgs& a, int channel,
                                                    float inverse) {
  const float4 weight = *reinterpret_cast<const float4*>(a.weight + channel);
  const float4 bias = *reinterpret_cast<const float4*>(a.bias + channel);
  return {{weight.x * inverse, weight.y * inverse, weight.z * inverse, weight.w * inverse},
          {bias.x, bias.y, bias.z, bias.w}};
}

// Adds up the sums of the warps and of the blocks that share a slice, normalises and writes this
// block's share. `sums`: (warp, position of the slice, BM + 4), in shared memory.
template <typename T, int BM, int kPartFloats>
__device__ __forceinline__ void RunConvGroupNormEpilogue(const ConvGroupNormKernelArgs& p,
                                                         float* sums) {
  constexpr int kColumns = BM / 4, kRows = kThreads / kColumns, kPitch = BM + 4;
  __shared__ float partial[kWarps * kMostGroups];
  __shared__ float4 moments[kMostGroups];
  const ConvArgs& a = p.a.conv;
  const int rank = blockIdx.z, split = p.config.split_k, slice = rank / split;
  const int column = threadIdx.x % kColumns, channel = blockIdx.y * BM + column * 4;
  const int group_columns = p.group_channels / 4, group = column / group_columns;
  AddWarps<kPartFloats>(sums, split);
  // the others read only this block's sums of their own shares
  const PositionRange share = PositionsOf(rank, p);
  const int first = share.begin + threadIdx.x / kColumns;
  float4* own = reinterpret_cast<float4*>(sums + column * 4);
  constexpr int kPitch4 = kPitch / 4;
  float sum = 0.0f;
  for (int row = first; row < share.end; row += kRows) {
    const float4 v = AddBlocks(own + row * kPitch4, slice, split, a, channel);
    own[row * kPitch4] = v;
    sum += (v.x + v.y) + (v.z + v.w);
  }
  const auto count = static_cast<float>(max(share.end - share.begin, 1) * p.group_channels);
  const float share_mean = GroupSum<BM>(sum, group_columns, group, partial) / count;
  const float squares = GroupSum<BM>(SquaresFrom(own, first, share.end, kRows, kPitch4, share_mean),
                                     group_columns, group, partial);
  if (threadIdx.x < kColumns && column % group_columns == 0)
    moments[group] = make_float4(share_mean, squares, 0.0f, 0.0f);
  const bool one_block = p.config.slices * split == 1;
  one_block ? __syncthreads() : ClusterBarrier();
  const float2 group_moments = CombineMoments(p, SharedAddress(moments + group));

  const float mean = group_moments.x, inverse = group_moments.y;
  const ChannelAffine affine = LoadAffine(p.a, channel, inverse);
  const int position0 = blockIdx.x * a.shape.out_h * a.shape.out_w + slice * p.slice;
  for (int row = first; row < share.end; row += kRows) {
    const float4 v = own[row * kPitch4];
    const float x[4] = {v.x, v.y, v.z, v.w};
    const size_t at = static_cast<size_t>(position0 + row) * a.shape.out_c + channel;
    Pack<T, 4> residual = {}, y;
    if (a.residual)
      residual = *reinterpret_cast<const Pack<T, 4>*>(static_cast<const T*>(a.residual) + at);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float out = __fmaf_rn(x[e] - mean, affine.scale[e], affine.shift[e]);
      if (a.residual) out += ToFloat(residual.v[e]);
      if (a.relu) out = fmaxf(out, 0.0f);
      y.v[e] = FromFloat<T>(out);
    }
    *reinterpret_cast<Pack<T, 4>*>(static_cast<T*>(a.y) + at) = y;
  }
  // the others may still read this block's sums and moments
  if (!one_block) ClusterBarrierRelaxed();
}

// grid: (pictures, tiles of out channels, slices x split_k)
template <Format F, int BM, int BN>
__global__ void __launch_bounds__(kThreads) ConvGroupNormKernel(const ConvGroupNormKernelArgs p) {
  using C = Tile<BM, BN>;
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const ConvArgs& a = p.a.conv;
  const ConvShape& s = a.shape;
  const uint32_t ring = SharedAddress(shared);
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int positions = s.out_h * s.out_w, picture = blockIdx.x, m0 = blockIdx.y * BM;
  const int rank = blockIdx.z, split = p.config.split_k, part = rank % split;
  const int n0 = rank / split * p.slice;  // first position of the slice, in the picture
  const int first = p.k_tiles * part / split, last = p.k_tiles * (part + 1) / split;

  const int vector = tid % kStageVectors, row0 = tid / kStageVectors;
  const size_t weight_pitch = static_cast<size_t>(p.k_tiles) * kRowBytes;
  const uint8_t* weight = static_cast<const uint8_t*>(a.weight) + (m0 + row0) * weight_pitch +
                          static_cast<size_t>(first) * kRowBytes + vector * 16;
  GatherRow rows[C::kBRows];
#pragma unroll
  for (int i = 0; i < C::kBRows; ++i) {
    const int n = n0 + row0 + i * kRowsPerPass;
    // beyond the slice: no position
    const bool inside = row0 + i * kRowsPerPass < p.slice && n < positions;
    rows[i] = MakeGatherRow(s, inside ? picture * positions + n : s.batch * positions, s.pad_w);
  }
  KCursor cursor;
  cursor.Start(first * kStageVectors + vector, s.in_c / kPerVector, s.kernel_w);
  auto load_weights = [&](int slot) {
#pragma unroll
    for (int i = 0; i < C::kARows; ++i)
      CopyAsync16(Swizzled(ring + slot * C::kStageBytes, row0 + i * kRowsPerPass, vector),
                  weight + i * kRowsPerPass * weight_pitch, true);
    weight += kRowBytes;
  };
  auto load_positions = [&](int slot) {
    const uint32_t to = ring + slot * C::kStageBytes + BM * kRowBytes;
#pragma unroll
    for (int i = 0; i < C::kBRows; ++i) {
      size_t pixel;
      const bool inside = GatherPixel(s, rows[i], cursor, pixel);
      CopyAsync16(Swizzled(to, row0 + i * kRowsPerPass, vector),
                  static_cast<const T*>(a.x) + pixel * s.in_c + cursor.c * kPerVector, inside);
    }
    cursor.Advance(s.in_c / kPerVector, s.kernel_w);
  };

  // weights do not depend on the kernel before
  for (int i = 0; i < kStages - 1 && first + i < last; ++i) load_weights(i);
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int i = 0; i < kStages - 1; ++i) {
    if (first + i < last) load_positions(i);
    CommitCopies();
  }
  float acc[C::kMi][C::kNi][4] = {};
  for (int tile = first, slot = 0; tile < last; ++tile) {
    WaitCopies<kStages - 2>();
    __syncthreads();
    const int next = slot == 0 ? kStages - 1 : slot - 1;
    if (tile + kStages - 1 < last) {
      load_weights(next);
      load_positions(next);
    }
    CommitCopies();
    const uint32_t stage = ring + slot * C::kStageBytes;
    uint32_t af[C::kMi][4];
#pragma unroll
    for (int i = 0; i < C::kMi; ++i)
      LoadMatrix4(af[i], Swizzled(stage, i * 16 + (lane & 15), warp * 2 + (lane >> 4)));
#pragma unroll
    for (int j = 0; j < C::kNi; j += 2) {
      uint32_t bf[4];
      const int row = j * 8 + (lane & 7) + ((lane >> 4) << 3);
      LoadMatrix4(bf, Swizzled(stage + BM * kRowBytes, row, warp * 2 + ((lane >> 3) & 1)));
#pragma unroll
      for (int i = 0; i < C::kMi; ++i) {
        MultiplyAccumulate<F>(acc[i][j], af[i], bf[0], bf[1]);
        MultiplyAccumulate<F>(acc[i][j + 1], af[i], bf[2], bf[3]);
      }
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  WaitCopies<0>();
  __syncthreads();

  float* sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int i = 0; i < C::kMi; ++i)
#pragma unroll
    for (int j = 0; j < C::kNi; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        sums[warp * C::kPartFloats + (j * 8 + 2 * (lane & 3) + (q & 1)) * C::kPitch + i * 16 +
             (lane >> 2) + (q >> 1) * 8] = acc[i][j][q];
  __syncthreads();
  RunConvGroupNormEpilogue<T, BM, C::kPartFloats>(p, sums);
}

template <Format F, int BM, int BN>
void LaunchTile(const ConvGroupNormKernelArgs& p, cudaStream_t stream) {
  using C = Tile<BM, BN>;
  const auto kernel = ConvGroupNormKernel<F, BM, BN>;
  AllowShared(kernel, C::kSharedBytes, "shared memory of convolution and norm");
  const ConvShape& s = p.a.conv.shape;
  LaunchShape shape;
  shape.cluster_z = p.config.slices * p.config.split_k;
  shape.grid = dim3(s.batch, s.out_c / BM, shape.cluster_z);
  shape.block = dim3(kThreads);
  shape.shared_bytes = C::kSharedBytes;
  Launch(kernel, shape, stream, "convolution and norm", p);
}

template <Format F>
void LaunchFormat(const ConvGroupNormKernelArgs& p, cudaStream_t stream) {
  if (p.config.block_m == 64) return LaunchTile<F, 64, 16>(p, stream);
  if (p.config.block_m == 32) return LaunchTile<F, 32, 48>(p, stream);
  LaunchTile<F, 16, 80>(p, stream);
}

int KTiles(const ConvShape& s) {
  const int per_stage = kStageVectors * kPerVector;
  return (s.K() + per_stage - 1) / per_stage;
}

}  // namespace

// Of all GPUs with clusters alike: `slices` x `split_k` sets the order of the sums.
ConvGroupNormConfig ChooseConvGroupNormConfig(const ConvShape& s) {
  const int positions = s.out_h * s.out_w;
  ConvGroupNormConfig c = positions <= 16    ? ConvGroupNormConfig{64, 16, 1, 8}
                          : positions <= 48  ? ConvGroupNormConfig{32, 48, 1, 8}
                          : positions <= 160 ? ConvGroupNormConfig{16, 80, 2, 4}
                          : positions <= 320 ? ConvGroupNormConfig{16, 80, 4, 2}
                          : positions <= 640 ? ConvGroupNormConfig{16, 80, 8, 1}
                                             : ConvGroupNormConfig{0, 0, 1, 1};
  while (c.split_k > KTiles(s)) c.split_k /= 2;
  return c;
}

bool ConvGroupNormSupports(Format format, const ConvGroupNormArgs& args) {
  if (ResidentConvGroupNormSupports(format, args)) return true;
  constexpr int kFewPictures = 8;
  const ConvShape& s = args.conv.shape;
  const int block_m = ChooseConvGroupNormConfig(s).block_m;
  if (args.conv.row_bias != nullptr || args.conv.activation != TokenActivation::kNone) return false;
  if (args.groups == 0 || block_m == 0 || s.out_c % block_m != 0) return false;
  const int channels = s.out_c / args.groups;
  return (format == Format::kFp16 || format == Format::kBf16) && s.batch <= kFewPictures &&
         (channels == 4 || channels == 8 || channels == 16) && s.phases == 1 && s.first_c == 0 &&
         !args.conv.y_fp32 && GpuTraits::Current().ClusterBlocks() >= kMostBlocks;
}

void LaunchConvGroupNorm(Format format, const ConvGroupNormArgs& args, cudaStream_t stream) {
  if (ResidentConvGroupNormSupports(format, args))
    return LaunchResidentConvGroupNorm(format, args, stream);
  const ConvShape& s = args.conv.shape;
  const ConvGroupNormConfig config = ChooseConvGroupNormConfig(s);
  const ConvGroupNormKernelArgs p = {args, config, KTiles(s),
                                     (s.out_h * s.out_w + config.slices - 1) / config.slices,
                                     s.out_c / args.groups};
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(p, stream);
  LaunchFormat<Format::kBf16>(p, stream);
}

}  // namespace mjp
