// A transformer's input: a thread for each element. Vectors have few values: their products are
// float32, column by column of the weights. Bytes moved: maps once, the result once or twice.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/transformer/tokens.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 128;

__device__ __forceinline__ float VectorElement(const VectorToken& v, int sequence, int width,
                                               int c) {
  float sum = v.bias[c];
  for (int i = 0; i < v.in; ++i)
    sum = fmaf(v.weight[static_cast<size_t>(i) * width + c],
               v.values[static_cast<size_t>(sequence) * v.in + i], sum);
  return sum;
}

// grid: (columns, tokens, sequences)
template <typename T>
__global__ void __launch_bounds__(kThreads) TokensKernel(const TokensArgs a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int c = blockIdx.x * kThreads + threadIdx.x, token = blockIdx.y, sequence = blockIdx.z;
  if (c >= a.width) return;
  float value;
  if (token < a.vectors) {
    value = VectorElement(a.vector[token], sequence, a.width, c);
  } else {
    const int cell = (token - a.vectors) % a.cells, map = (token - a.vectors) / a.cells;
    const size_t row = (static_cast<size_t>(map) * a.sequences + sequence) * a.cells + cell;
    value = ToFloat(static_cast<const T*>(a.map)[row * a.width + c]);
  }
  if (a.positions != nullptr) value += a.positions[static_cast<size_t>(token) * a.width + c];
  const size_t at = (static_cast<size_t>(sequence) * gridDim.y + token) * a.width + c;
  a.x[at] = value;
  if (a.y != nullptr) static_cast<T*>(a.y)[at] = FromFloat<T>(value);
}

}  // namespace

void LaunchTokens(Format format, const TokensArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.width + kThreads - 1) / kThreads, a.Tokens(), a.sequences);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16) return Launch(TokensKernel<__half>, shape, stream, "tokens", a);
  if (format == Format::kBf16)
    return Launch(TokensKernel<__nv_bfloat16>, shape, stream, "tokens", a);
  Launch(TokensKernel<float>, shape, stream, "tokens", a);
}

}  // namespace mjp
