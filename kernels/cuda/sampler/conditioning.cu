// Picture preparation and the conditioning vector: gathers, a thread per pixel or element.

#include <algorithm>

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/conditioning.cuh"
#include "kernels/cuda/sampler/store_pixel.cuh"
#include "kernels/cuda/transformer/token_activation.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 256;

// One pixel of picture `frame`, normalised.
template <typename T>
__device__ __forceinline__ void PreparePixel(const PrepareArgs& a, int frame, int y, int x,
                                             T* out) {
  const int picture = a.Input(frame);
  const float* table = a.TableOf(picture);
  const size_t row = static_cast<size_t>(picture) * a.in_h + a.top + y;
  const uint8_t* rgb = a.rgb + (row * a.in_w + a.left + x) * 3;
  for (int c = 0; c < 3; ++c) out[c] = FromFloat<T>(table[c * 256 + rgb[c]]);
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
  out.v[3] = out.v[7] = FromFloat<T>(0.0f);
  static_cast<Pack<T, 8>*>(a.y)[i] = out;
}

template <typename T>
__global__ void PrepareKernel(const PrepareArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.frames * a.out_h * a.out_w) return;
  const int x = i % a.out_w, y = i / a.out_w % a.out_h, frame = i / a.out_w / a.out_h;
  T rgb[3];
  PreparePixel(a, frame, y, x, rgb);
  StorePixel(a, frame, y, x, rgb);
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
  const int step_width = a.state_dim + a.feature_dim + a.environment_dim;
  const int taken = step_width - (a.without_environment ? a.environment_dim : 0);  // of a step
  T* const mish = static_cast<T*>(a.mish) + static_cast<size_t>(env) * a.mish_pitch;
  if (column >= a.steps * taken && column < a.mish_pitch) mish[column] = FromFloat<T>(0.0f);
  if (column >= a.steps * step_width) return;
  const size_t at = static_cast<size_t>(env) * a.steps * step_width + column;
  const float value = *a.use_given ? a.given[at] : ConditioningElement(a, env, column);
  a.cond[at] = value;
  const int step = column / step_width, in_step = column % step_width;
  if (in_step < taken)
    mish[step * taken + in_step] = FromFloat<T>(a.silu ? SiluToken(value) : Mish(value));
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
  const int width = a.steps * (a.state_dim + a.feature_dim + a.environment_dim);
  shape.grid = dim3((std::max(a.mish_pitch, width) + kThreads - 1) / kThreads, a.environments);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16)
    return Launch(ConditioningKernel<__half>, shape, stream, "conditioning", a);
  if (format == Format::kBf16)
    return Launch(ConditioningKernel<__nv_bfloat16>, shape, stream, "conditioning", a);
  Launch(ConditioningKernel<float>, shape, stream, "conditioning", a);
}

}  // namespace mjp
