// First convolution and head of the U-Net: one CTA per row (and 64 channels), operands in registers
// and shared memory. Bound by latency; a few kilobytes of weights.

#include "kernels/cuda/norm_conv/in_out_conv.cuh"
#include "kernels/cuda/norm_conv/norm_prologue.cuh"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 256;
constexpr int kFirstChannels = 64;         // of a CTA of the first convolution
constexpr int kCommonTerms = 16;           // taps x channels of most networks
constexpr int kMaxHeadBytes = 128 * 1024;  // shared memory

// grid: (rows, tiles of 64 channels); a thread makes one channel of a quarter of the positions.
// kTerms: taps x channels at most.
template <typename T, int kTerms>
__global__ void __launch_bounds__(kThreads) FirstConvKernel(const FirstConvArgs a) {
  // x between zeros, so that no position needs a check
  __shared__ float x[kMaxFirstElements + 2 * kMaxFirstTerms];
  const int c = blockIdx.y * kFirstChannels + threadIdx.x % kFirstChannels, row = blockIdx.x;
  const int terms = a.taps * a.in_c, elements = a.length * a.in_c;
  const int before = a.taps / 2 * a.in_c;
  float weight[kTerms] = {}, shortcut_weight[kMaxFirstChannels] = {};
  float bias = 0.0f, shortcut_bias = 0.0f;
  if (c < a.out_c) {
#pragma unroll
    for (int i = 0; i < kTerms; ++i)
      if (i < terms) weight[i] = a.weight[i * a.out_c + c];
#pragma unroll
    for (int i = 0; i < kMaxFirstChannels; ++i)
      if (i < a.in_c) shortcut_weight[i] = a.shortcut_weight[i * a.out_c + c];
    bias = a.bias[c], shortcut_bias = a.shortcut_bias[c];
  }
  for (int i = threadIdx.x; i < elements + 2 * kMaxFirstTerms; i += kThreads) x[i] = 0.0f;
  __syncthreads();
  ReleaseSuccessor();
  WaitForPredecessor();
  const T* in = static_cast<const T*>(a.x) + static_cast<size_t>(row) * a.length * a.pitch;
  for (int i = threadIdx.x; i < elements; i += kThreads)
    x[before + i] = ToFloat(in[i / a.in_c * a.pitch + i % a.in_c]);
  __syncthreads();
  if (c >= a.out_c) return;
  for (int l = threadIdx.x / kFirstChannels; l < a.length; l += kThreads / kFirstChannels) {
    const float* from = x + l * a.in_c;
    float sum = bias, shortcut = shortcut_bias;
#pragma unroll
    for (int i = 0; i < kTerms; ++i) sum += weight[i] * from[i];
#pragma unroll
    for (int i = 0; i < kMaxFirstChannels; ++i) shortcut += shortcut_weight[i] * from[before + i];
    const size_t out = (static_cast<size_t>(row) * a.length + l) * a.out_c + c;
    static_cast<T*>(a.y)[out] = FromFloat<T>(sum);
    static_cast<T*>(a.shortcut_y)[out] = FromFloat<T>(shortcut);
  }
}

// grid: (rows); a warp makes all actions of one position at a time
template <typename T>
__global__ void __launch_bounds__(kThreads) HeadKernel(const HeadArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  using P = Pack<T, kPackChannels>;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = kThreads / 32;
  const int row = blockIdx.x, channels = a.source.channels;
  ReleaseSuccessor();
  WaitForPredecessor();
  T* h = reinterpret_cast<T*>(shared);
  for (int group = warp; group * a.source.group_channels < channels; group += warps) {
    NormalizeGroup<T>(a.source, row, a.length, group, lane, [&](int l, int channel, const P& pack) {
      *reinterpret_cast<P*>(h + l * channels + channel) = pack;
    });
  }
  __syncthreads();
  for (int l = warp; l < a.length; l += warps) {
    for (int action = 0; action < a.out_c; ++action) {
      float sum = 0.0f;
      for (int c = lane * kPackChannels; c < channels; c += 32 * kPackChannels) {
        const P pack = *reinterpret_cast<const P*>(h + l * channels + c);
        float weight[kPackChannels];
        LoadEight(a.weight + action * channels + c, weight);
#pragma unroll
        for (int v = 0; v < kPackChannels; ++v) sum += ToFloat(pack.v[v]) * weight[v];
      }
      sum = WarpSum(sum);
      if (lane == 0)
        a.y[(static_cast<size_t>(row) * a.length + l) * a.out_c + action] = sum + a.bias[action];
    }
  }
}

template <typename T>
void FirstConv(const FirstConvArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.rows, (a.out_c + kFirstChannels - 1) / kFirstChannels);
  shape.block = dim3(kThreads);
  if (a.taps * a.in_c <= kCommonTerms)
    return Launch(FirstConvKernel<T, kCommonTerms>, shape, stream, "first convolution", a);
  Launch(FirstConvKernel<T, kMaxFirstTerms>, shape, stream, "first convolution", a);
}

template <typename T>
void Head(const HeadArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3(a.rows);
  shape.block = dim3(kThreads);
  shape.shared_bytes = sizeof(T) * a.length * a.source.channels;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      HeadKernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxHeadBytes);
  CheckCuda(allowed, "shared memory of the head");
  Launch(HeadKernel<T>, shape, stream, "head", a);
}

}  // namespace

void LaunchFirstConv(Format format, const FirstConvArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return FirstConv<__half>(a, stream);
  if (format == Format::kBf16) return FirstConv<__nv_bfloat16>(a, stream);
  FirstConv<float>(a, stream);
}

bool HeadSupports(Format format, const HeadArgs& a) {
  const size_t bytes = size_t{1} * a.length * a.source.channels * FormatBytes(format);
  return bytes <= size_t{kMaxHeadBytes} && a.source.materialized == nullptr &&
         NormConvSourceSupports(a.source, a.length);
}

void LaunchHead(Format format, const HeadArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return Head<__half>(a, stream);
  if (format == Format::kBf16) return Head<__nv_bfloat16>(a, stream);
  Head<float>(a, stream);
}

}  // namespace mjp
