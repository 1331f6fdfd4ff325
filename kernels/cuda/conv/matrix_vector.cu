// y[m] = bias[m] + sum_k w[m][k] x[k], of one position: bound by memory.
//
// A warp makes kRows out channels and reads 512 neighbouring bytes of each at a time, so that
// accesses to memory are long: the tiles of the general kernel, 128 bytes of 64 channels, reach
// half of its bandwidth. x is read from L1. A lane adds its products in the order of k, and the
// warp's lanes are added as a tree, so the bits depend on the shape alone.

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/conv/matrix_vector.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kRows = 2;   // out channels of a warp
constexpr int kAhead = 4;  // accesses of a row that are under way at once
constexpr int kVector = 8, kWarpK = 32 * kVector;

template <typename T>
__device__ __forceinline__ void AddProducts(float& sum, const uint4& w, const uint4& x) {
  const auto& a = reinterpret_cast<const Pack<T, kVector>&>(w);
  const auto& b = reinterpret_cast<const Pack<T, kVector>&>(x);
#pragma unroll
  for (int i = 0; i < kVector; ++i) sum = fmaf(ToFloat(a.v[i]), ToFloat(b.v[i]), sum);
}

// grid: out channels / (kWarps * kRows)
template <typename T>
__global__ void __launch_bounds__(kThreads) MatrixVectorKernel(const ConvArgs a, int pitch) {
  const int lane = threadIdx.x & 31, k = a.shape.in_c;
  const int first = (blockIdx.x * kWarps + threadIdx.x / 32) * kRows;
  const T* const x = static_cast<const T*>(a.x) + lane * kVector;
  const T* weights[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    weights[r] = static_cast<const T*>(a.weight) + lane * kVector +
                 static_cast<size_t>(min(first + r, a.shape.out_c - 1)) * pitch;
  float sums[kRows] = {};
  ReleaseSuccessor();
  for (int from = 0; from < k; from += kAhead * kWarpK) {
    uint4 w[kAhead][kRows] = {};
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (from + i * kWarpK + lane * kVector < k)
          w[i][r] = LoadNow16(weights[r] + from + i * kWarpK);
    if (from == 0) WaitForPredecessor();  // nobody before writes the weights
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (from + i * kWarpK + lane * kVector >= k) break;
      const uint4 v = *reinterpret_cast<const uint4*>(x + from + i * kWarpK);
#pragma unroll
      for (int r = 0; r < kRows; ++r) AddProducts<T>(sums[r], w[i][r], v);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum = WarpSum(sums[r]);
    if (lane == 0 && first + r < a.shape.out_c)
      static_cast<float*>(a.y)[first + r] = sum + (a.bias == nullptr ? 0.0f : a.bias[first + r]);
  }
}

template <typename T>
void LaunchTyped(const ConvArgs& args, int pitch, cudaStream_t stream) {
  LaunchShape shape;
  constexpr int kChannels = kWarps * kRows;
  shape.grid = dim3((args.shape.out_c + kChannels - 1) / kChannels);
  shape.block = dim3(kThreads);
  Launch(MatrixVectorKernel<T>, shape, stream, "product of a matrix and a vector", args, pitch);
}

}  // namespace

bool MatrixVectorSupports(Format format, const ConvArgs& args) {
  constexpr int64_t kLeastWeights = 25 << 20;  // 50 MB, as much as a Hopper's L2
  const ConvShape& s = args.shape;
  return FormatBytes(format) == 2 && s.IsLinear() && s.batch == 1 && args.y_fp32 &&
         args.row_bias == nullptr && args.activation == TokenActivation::kNone &&
         args.residual == nullptr && !args.relu && int64_t{s.in_c} * s.out_c >= kLeastWeights;
}

void LaunchMatrixVector(Format format, const ConvArgs& args, cudaStream_t stream) {
  constexpr int kPitchUnit = kRowBytes / 2;
  const int pitch = (args.shape.in_c + kPitchUnit - 1) / kPitchUnit * kPitchUnit;
  if (format == Format::kFp16) return LaunchTyped<__half>(args, pitch, stream);
  LaunchTyped<__nv_bfloat16>(args, pitch, stream);
}

}  // namespace mjp
