// Picture preparation and the conditioning vector: gathers, a thread per pixel or element.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/conditioning.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 256;

// One pixel of picture `frame`, normalised, in the first three of `out`; the fourth is 0.
template <typename T>
__device__ __forceinline__ void PreparePixel(const PrepareArgs& a, int frame, int y, int x,
                                             T* out) {
  const size_t picture = static_cast<size_t>(frame) * a.in_stride + a.in_first;
  const uint8_t* rgb = a.rgb + ((picture * a.in_h + a.top + y) * a.in_w + a.left + x) * 3;
  for (int c = 0; c < 3; ++c) out[c] = FromFloat<T>(a.table[c * 256 + rgb[c]]);
  out[3] = FromFloat<T>(0.0f);
}

template <typename T>
__global__ void PrepareSpaceToDepthKernel(const PrepareArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;  // pixels (2 y + part, 2 x) and its right one
  if (i >= a.frames * a.out_h * a.out_w / 2) return;
  const int part = i & 1, x = i / 2 % (a.out_w / 2), y = i / 2 / (a.out_w / 2) % (a.out_h / 2);
  const int frame = i / (a.out_h * a.out_w / 2);
  Pack<T, 8> out;
  PreparePixel(a, frame, 2 * y + part, 2 * x, out.v);
  PreparePixel(a, frame, 2 * y + part, 2 * x + 1, out.v + 4);
  static_cast<Pack<T, 8>*>(a.y)[i] = out;
}

template <typename T>
__global__ void PrepareKernel(const PrepareArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.frames * a.out_h * a.out_w) return;
  const int x = i % a.out_w, y = i / a.out_w % a.out_h, frame = i / a.out_w / a.out_h;
  Pack<T, 8> out;
  PreparePixel(a, frame, y, x, out.v);
  for (int c = 4; c < 8; ++c) out.v[c] = FromFloat<T>(0.0f);
  static_cast<Pack<T, 8>*>(a.y)[i] = out;
}

__device__ float ConditioningElement(const ConditioningArgs& a, int env, int column) {
  const int width = a.state_dim + a.feature_dim + a.environment_dim;
  const int step = column / width;
  int i = column % width;
  const size_t row = static_cast<size_t>(env) * a.steps + step;
  const int before = a.image_first ? 0 : a.state_dim;
  if (i >= before && i < before + a.feature_dim) {
    i -= before;
    const int part_dim = a.feature_dim / a.feature_parts;
    return a.features[i / part_dim * a.part_stride + row * part_dim + i % part_dim];
  }
  if (a.image_first) i -= a.feature_dim;
  if (i < a.state_dim) return a.state[row * a.state_dim + i];
  i -= a.state_dim + (a.image_first ? 0 : a.feature_dim);
  return a.environment[row * a.environment_dim + i];
}

template <typename T>
__global__ void ConditioningKernel(const ConditioningArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int column = blockIdx.x * kThreads + threadIdx.x, env = blockIdx.y;
  if (column >= a.mish_pitch) return;
  const int width = a.steps * (a.state_dim + a.feature_dim + a.environment_dim);
  float mish = 0.0f;
  if (column < width) {
    const size_t at = static_cast<size_t>(env) * width + column;
    const float value = *a.use_given ? a.given[at] : ConditioningElement(a, env, column);
    a.cond[at] = value;
    mish = a.silu ? SiluToken(value) : Mish(value);
  }
  static_cast<T*>(a.mish)[static_cast<size_t>(env) * a.mish_pitch + column] = FromFloat<T>(mish);
}

}  // namespace

namespace {

template <typename T>
void LaunchPrepareTyped(const PrepareArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  const int threads = a.frames * a.out_h * a.out_w / (a.space_to_depth ? 2 : 1);
  shape.grid = dim3((threads + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  const auto kernel = a.space_to_depth ? PrepareSpaceToDepthKernel<T> : PrepareKernel<T>;
  Launch(kernel, shape, stream, "prepare", a);
}

}  // namespace

void LaunchPrepare(Format format, const PrepareArgs& a, cudaStream_t stream) {
  if (format == Format::kFp16) return LaunchPrepareTyped<__half>(a, stream);
  if (format == Format::kBf16) return LaunchPrepareTyped<__nv_bfloat16>(a, stream);
  LaunchPrepareTyped<float>(a, stream);
}

void LaunchConditioning(Format format, const ConditioningArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.mish_pitch + kThreads - 1) / kThreads, a.environments);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16)
    return Launch(ConditioningKernel<__half>, shape, stream, "conditioning", a);
  if (format == Format::kBf16)
    return Launch(ConditioningKernel<__nv_bfloat16>, shape, stream, "conditioning", a);
  Launch(ConditioningKernel<float>, shape, stream, "conditioning", a);
}

}  // namespace mjp
