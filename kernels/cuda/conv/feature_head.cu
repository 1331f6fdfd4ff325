// The head of a picture's encoder: a 1x1 convolution of the last map, keypoints or a flatten, and a
// dense layer. Bound by latency: three dependent launches of 2 to 5 us otherwise.
//
// A CTA takes a picture. All weights are on their way to shared memory before the map is there. The
// convolution is products of warps that share the in channels out (mma.sync); their sums are added
// in the order of channels. In the dense layer some lanes share an output. Bytes: all weights and
// the map once for each picture, from L2.

#include "kernels/cuda/conv/feature_head.cuh"
#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/norm/spatial_softmax.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/shared/host_device.h"

namespace mjp {
namespace {

constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kParts = 8;  // of the in channels
constexpr int kTile = 16;  // channels and cells of a product, and its k
constexpr int kMostTiles = 2, kMostCellTiles = 3;
constexpr int kVector = 8;  // values of 16 bytes

// Sizes, and where things stand in shared memory, in bytes. Rows of weights and of the map are
// followed by 16 bytes that keep ldmatrix free of bank conflicts.
struct Layout {
  int cells, in_c, pool_c, flat, features;
  int pool_weight, dense_weight, map, sums, logits, values, pool_bias, dense_bias, pos_grid, end;

  explicit Layout(const FeatureHeadArgs& a)
      : cells(a.pool.shape.in_h * a.pool.shape.in_w),
        in_c(a.pool.shape.in_c),
        pool_c(a.pool.shape.out_c),
        flat(a.dense.shape.in_c),
        features(a.dense.shape.out_c) {
    pool_weight = 0;
    dense_weight = pool_weight + pool_c * (in_c * 2 + 16);
    map = dense_weight + features * (flat * 2 + 16);
    sums = map + cells * (in_c * 2 + 16);
    logits = sums + kParts * CellTiles() * kTile * SumPitch() * 4;
    values = logits + cells * pool_c * 4;
    pool_bias = values + flat * 2;
    dense_bias = pool_bias + pool_c * 4;
    pos_grid = dense_bias + features * 4;
    end = pos_grid + (a.pos_grid ? cells * 8 : 0);
  }
  MJP_HOST_DEVICE int CellTiles() const { return (cells + kTile - 1) / kTile; }
  // From a cell's sums to the next, in floats.
  MJP_HOST_DEVICE int SumPitch() const { return pool_c + 4; }
};

struct KernelArgs {
  Layout layout;
  const void *x, *pool_weight, *dense_weight;
  const float *pool_bias, *pos_grid, *dense_bias;
  float* y;
  bool relu;
};

// Copies `rows` of `columns` 16-bit values, `pitch` bytes apart.
__device__ __forceinline__ void CopyRows(uint32_t to, const void* from, int rows, int columns,
                                         int pitch) {
  const int vectors = columns / kVector;
  for (int i = threadIdx.x; i < rows * vectors; i += kThreads) {
    const int row = i / vectors, vector = i % vectors;
    CopyAsync16(to + row * (columns * 2 + 16) + vector * 16,
                static_cast<const uint8_t*>(from) + size_t{1} * row * pitch + vector * 16, true);
  }
}

// Copies floats, or zeros where `from` is null.
__device__ __forceinline__ void CopyFloats(uint8_t* to, const float* from, int count) {
  for (int i = threadIdx.x; i < count; i += kThreads)
    reinterpret_cast<float*>(to)[i] = from ? from[i] : 0.0f;
}

// The sums of a part of the in channels, (part, cell, channel).
template <Format F>
__device__ __forceinline__ void MultiplyPart(const Layout& s, uint8_t* shared, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32, pitch = s.in_c * 2 + 16;
  const int steps = s.in_c / kTile, begin = steps * part / kParts,
            end = steps * (part + 1) / kParts;
  const int tiles = s.pool_c / kTile, cell_tiles = s.CellTiles();
  const uint32_t base = SharedAddress(shared);
  const uint32_t weights = base + s.pool_weight + (lane & 15) * pitch + (lane >> 4) * 16;
  uint32_t map[kMostCellTiles];
#pragma unroll
  for (int j = 0; j < kMostCellTiles; ++j) {
    const int cell = j * kTile + (lane & 7) + ((lane >> 4) << 3);
    map[j] = base + s.map + (cell < s.cells ? cell : 0) * pitch + ((lane >> 3) & 1) * 16;
  }
  float sums[kMostTiles][2 * kMostCellTiles][4] = {};
  for (int step = begin; step < end; ++step) {
    uint32_t a[kMostTiles][4];
#pragma unroll
    for (int i = 0; i < kMostTiles; ++i)
      if (i < tiles) LoadMatrix4(a[i], weights + i * kTile * pitch + step * kTile * 2);
#pragma unroll
    for (int j = 0; j < kMostCellTiles; ++j) {
      if (j >= cell_tiles) continue;
      uint32_t b[4];
      LoadMatrix4(b, map[j] + step * kTile * 2);
#pragma unroll
      for (int i = 0; i < kMostTiles; ++i) {
        if (i >= tiles) continue;
        MultiplyAccumulate<F>(sums[i][2 * j], a[i], b[0], b[1]);
        MultiplyAccumulate<F>(sums[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
  float* to = reinterpret_cast<float*>(shared + s.sums) +
              (part * cell_tiles * kTile + 2 * (lane & 3)) * s.SumPitch() + (lane >> 2);
#pragma unroll
  for (int i = 0; i < kMostTiles; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kMostCellTiles; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (i < tiles && j < 2 * cell_tiles)
          to[(j * 8 + (q & 1)) * s.SumPitch() + i * kTile + (q >> 1) * 8] = sums[i][j][q];
}

// Adds the parts; makes the dense layer's input.
template <typename T>
__device__ __forceinline__ void MakeValues(const KernelArgs& a, uint8_t* shared) {
  const Layout& s = a.layout;
  const int pitch = s.SumPitch(), part = s.CellTiles() * kTile * pitch;
  const auto* sums = reinterpret_cast<const float*>(shared + s.sums);
  auto* logits = reinterpret_cast<float*>(shared + s.logits);
  auto* values = reinterpret_cast<T*>(shared + s.values);
  const auto* bias = reinterpret_cast<const float*>(shared + s.pool_bias);
  for (int i = threadIdx.x; i < s.cells * s.pool_c; i += kThreads) {
    const int channel = i % s.pool_c, at = i / s.pool_c * pitch + channel;
    float sum = bias[channel];
#pragma unroll
    for (int p = 0; p < kParts; ++p) sum += sums[p * part + at];
    if (a.pos_grid) {
      logits[i] = sum;
    } else {
      values[i] = FromFloat<T>(fmaxf(sum, 0.0f));
    }
  }
  __syncthreads();
  if (!a.pos_grid) return;
  const int channel = static_cast<int>(threadIdx.x);
  if (channel < s.pool_c) {
    const float2 point = SpatialSoftmax(logits + channel, s.pool_c, s.cells,
                                        reinterpret_cast<const float*>(shared + s.pos_grid));
    values[2 * channel] = FromFloat<T>(point.x);
    values[2 * channel + 1] = FromFloat<T>(point.y);
  }
  __syncthreads();
}

// The dense layer: as many lanes share an output as it has vectors, up to a warp.
template <typename T>
__device__ __forceinline__ void RunDense(const KernelArgs& a, const uint8_t* shared) {
  using Values = Pack<T, kVector>;
  const Layout& s = a.layout;
  const int vectors = s.flat / kVector;
  int sharing = 1;
  while (sharing < 32 && sharing < vectors) sharing *= 2;
  const int lane = static_cast<int>(threadIdx.x) & (sharing - 1);
  const auto* values = reinterpret_cast<const Values*>(shared + s.values);
  // of all lanes of a warp equally often
  for (int first = threadIdx.x / 32 * (32 / sharing); first < s.features;
       first += kThreads / sharing) {
    const int feature = first + static_cast<int>(threadIdx.x) % 32 / sharing;
    const int row = min(feature, s.features - 1);
    const auto* weights =
        reinterpret_cast<const Values*>(shared + s.dense_weight + row * (s.flat * 2 + 16));
    float sum = 0.0f;
    for (int i = lane; i < vectors; i += sharing) {
      const Values w = weights[i], v = values[i];
#pragma unroll
      for (int e = 0; e < kVector; ++e) sum = __fmaf_rn(ToFloat(w.v[e]), ToFloat(v.v[e]), sum);
    }
    for (int mask = sharing / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
    if (lane != 0 || feature >= s.features) continue;
    sum += reinterpret_cast<const float*>(shared + s.dense_bias)[feature];
    a.y[size_t{1} * blockIdx.x * s.features + feature] = a.relu ? fmaxf(sum, 0.0f) : sum;
  }
}

// grid: (pictures)
template <Format F>
__global__ void __launch_bounds__(kThreads) FeatureHeadKernel(const KernelArgs a) {
  using T = Storage<F>;
  extern __shared__ __align__(128) uint8_t shared[];
  const Layout& s = a.layout;
  const uint32_t base = SharedAddress(shared);
  // as PackConvWeights
  const auto packed = [](int k) { return (k * 2 + kRowBytes - 1) / kRowBytes * kRowBytes; };
  CopyRows(base + s.pool_weight, a.pool_weight, s.pool_c, s.in_c, packed(s.in_c));
  CopyRows(base + s.dense_weight, a.dense_weight, s.features, s.flat, packed(s.flat));
  CopyFloats(shared + s.pool_bias, a.pool_bias, s.pool_c);
  CopyFloats(shared + s.dense_bias, a.dense_bias, s.features);
  if (a.pos_grid) CopyFloats(shared + s.pos_grid, a.pos_grid, 2 * s.cells);
  WaitForPredecessor();
  ReleaseSuccessor();
  CopyRows(base + s.map, static_cast<const T*>(a.x) + size_t{1} * blockIdx.x * s.cells * s.in_c,
           s.cells, s.in_c, s.in_c * 2);
  CommitCopies();
  WaitCopies<0>();
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp < kParts) MultiplyPart<F>(s, shared, warp);
  __syncthreads();
  MakeValues<T>(a, shared);
  RunDense<T>(a, shared);
}

template <Format F>
void LaunchFormat(const KernelArgs& args, int pictures, cudaStream_t stream) {
  AllowShared(FeatureHeadKernel<F>, GpuTraits::Current().shared_bytes,
              "shared memory of the feature head");
  LaunchShape shape;
  shape.grid = dim3(pictures);
  shape.block = dim3(kThreads);
  shape.shared_bytes = args.layout.end;
  Launch(FeatureHeadKernel<F>, shape, stream, "feature head", args);
}

}  // namespace

bool FeatureHeadSupports(Format format, const FeatureHeadArgs& a) {
  const ConvShape &pool = a.pool.shape, &dense = a.dense.shape;
  const GpuTraits& gpu = GpuTraits::Current();
  const int cells = pool.in_h * pool.in_w;
  return FormatBytes(format) == 2 && pool.K() == pool.in_c && pool.stride == 1 &&
         pool.phases == 1 && pool.in_c % kTile == 0 && pool.out_c % kTile == 0 &&
         pool.out_c <= kMostTiles * kTile && cells <= kMostCellTiles * kTile &&
         dense.in_c == pool.out_c * (a.pos_grid ? 2 : cells) && pool.batch <= gpu.multiprocessors &&
         Layout(a).end <= gpu.shared_bytes;
}

void LaunchFeatureHead(Format format, const FeatureHeadArgs& a, cudaStream_t stream) {
  const KernelArgs args = {Layout(a),   a.pool.x,   a.pool.weight, a.dense.weight,
                           a.pool.bias, a.pos_grid, a.dense.bias,  static_cast<float*>(a.dense.y),
                           a.dense.relu};
  const int pictures = a.pool.shape.batch;
  if (format == Format::kFp16) return LaunchFormat<Format::kFp16>(args, pictures, stream);
  if (format == Format::kBf16) return LaunchFormat<Format::kBf16>(args, pictures, stream);
  throw Unsupported("the feature head has fp16 and bf16 kernels alone");
}

}  // namespace mjp
