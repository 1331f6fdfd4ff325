// First and last layer of the U-Net: one block per row (and 256 channels), operands in registers
// and shared memory. Bound by latency; a few kilobytes of weights.

#include "kernels/fused_input.cuh"
#include "kernels/launch.cuh"
#include "kernels/unet_ends.cuh"

namespace dp {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxHeadBytes = 128 * 1024;  // shared memory

// grid: (rows, tiles of 256 channels); a thread makes one channel of all positions
template <typename T>
__global__ void __launch_bounds__(kThreads) FirstConvKernel(const FirstConvArgs a) {
  __shared__ float x[kMaxFirstElements];
  const int c = blockIdx.y * kThreads + threadIdx.x, row = blockIdx.x;
  float weight[kMaxFirstTerms] = {}, residual[kMaxFirstTerms] = {};
  const int terms = a.taps * a.in_c;
  if (c < a.out_c) {
#pragma unroll
    for (int i = 0; i < kMaxFirstTerms; ++i) {
      if (i < terms) weight[i] = a.weight[i * a.out_c + c];
      if (i < a.in_c) residual[i] = a.residual_weight[i * a.out_c + c];
    }
  }
  ReleaseSuccessor();
  WaitForPredecessor();
  const T* in = static_cast<const T*>(a.x) + static_cast<size_t>(row) * a.length * a.pitch;
  for (int i = threadIdx.x; i < a.length * a.in_c; i += kThreads)
    x[i] = ToFloat(in[i / a.in_c * a.pitch + i % a.in_c]);
  __syncthreads();
  if (c >= a.out_c) return;
  const float bias = a.bias[c], residual_bias = a.residual_bias[c];
  const int first = -(a.taps / 2) * a.in_c, end = a.length * a.in_c;
  for (int l = 0; l < a.length; ++l) {
    float sum = bias, beside = residual_bias;
#pragma unroll
    for (int i = 0; i < kMaxFirstTerms; ++i) {
      const int at = l * a.in_c + first + i;
      if (i < terms && at >= 0 && at < end) sum += weight[i] * x[at];
      if (i < a.in_c) beside += residual[i] * x[l * a.in_c + i];
    }
    const size_t out = (static_cast<size_t>(row) * a.length + l) * a.out_c + c;
    static_cast<T*>(a.y)[out] = FromFloat<T>(sum);
    static_cast<T*>(a.residual_y)[out] = FromFloat<T>(beside);
  }
}

// grid: (rows); a warp makes one (position, action) at a time
template <typename T>
__global__ void __launch_bounds__(kThreads) HeadKernel(const HeadArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  using P = Pack<T, kFusedPack>;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = kThreads / 32;
  const int row = blockIdx.x, channels = a.source.channels;
  ReleaseSuccessor();
  WaitForPredecessor();
  T* h = reinterpret_cast<T*>(shared);
  for (int group = warp; group < a.source.groups; group += warps) {
    FinishGroup<T>(a.source, row, a.length, group, lane, [&](int l, int channel, const P& pack) {
      *reinterpret_cast<P*>(h + l * channels + channel) = pack;
    });
  }
  __syncthreads();
  for (int i = warp; i < a.length * a.out_c; i += warps) {
    const T* from = h + i / a.out_c * channels;
    const float* weight = a.weight + i % a.out_c * channels;
    float sum = 0.0f;
    for (int c = lane; c < channels; c += 32) sum += ToFloat(from[c]) * weight[c];
    sum = WarpSum(sum);
    if (lane == 0)
      a.y[static_cast<size_t>(row) * a.length * a.out_c + i] = sum + a.bias[i % a.out_c];
  }
}

template <typename T>
void FirstConv(const FirstConvArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.rows, (a.out_c + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  Launch(FirstConvKernel<T>, shape, stream, "first convolution", a);
}

template <typename T>
void Head(const HeadArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.rows);
  shape.block = dim3(kThreads);
  shape.shared_bytes = sizeof(T) * a.length * a.source.channels;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      HeadKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxHeadBytes);
  CheckCuda(allowed, "shared memory of the last layer");
  Launch(HeadKernel<T>, shape, stream, "last layer", a);
}

}  // namespace

void LaunchFirstConv(Format format, const FirstConvArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return FirstConv<__half>(a, stream);
  if (format == Format::kBf16) return FirstConv<__nv_bfloat16>(a, stream);
  FirstConv<float>(a, stream);
}

bool HeadSupports(Format format, const HeadArgs& a) {
  const size_t bytes = size_t{1} * a.length * a.source.channels * FormatBytes(format);
  return bytes <= size_t{kMaxHeadBytes} && FusedSourceSupports(a.source, a.length);
}

void LaunchHead(Format format, const HeadArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return Head<__half>(a, stream);
  if (format == Format::kBf16) return Head<__nv_bfloat16>(a, stream);
  Head<float>(a, stream);
}

}  // namespace dp
