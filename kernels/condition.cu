// Picture preparation and the conditioning vector: gathers, a thread per pixel or element.

#include "kernels/condition.cuh"
#include "kernels/device_math.cuh"
#include "kernels/launch.cuh"

namespace dp {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void PrepareKernel(const PrepareArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.frames * a.out_h * a.out_w) return;
  const int x = i % a.out_w, y = i / a.out_w % a.out_h, frame = i / a.out_w / a.out_h;
  const size_t picture = static_cast<size_t>(frame) * a.in_stride + a.in_first;
  const uint8_t* rgb = a.rgb + ((picture * a.in_h + a.top + y) * a.in_w + a.left + x) * 3;
  Pack<T, 8> out = {};
  for (int c = 0; c < 3; ++c) out.v[c] = FromFloat<T>(a.table[c * 256 + rgb[c]]);
  for (int c = 3; c < 8; ++c) out.v[c] = FromFloat<T>(0.0f);
  static_cast<Pack<T, 8>*>(a.y)[i] = out;
}

__device__ float ConditionElement(const ConditionArgs& a, int env, int column) {
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
__global__ void ConditionKernel(const ConditionArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int column = blockIdx.x * kThreads + threadIdx.x, env = blockIdx.y;
  if (column >= a.mish_pitch) return;
  const int width = a.steps * (a.state_dim + a.feature_dim + a.environment_dim);
  float mish = 0.0f;
  if (column < width) {
    const size_t at = static_cast<size_t>(env) * width + column;
    const float value = *a.use_given ? a.given[at] : ConditionElement(a, env, column);
    a.cond[at] = value;
    mish = Mish(value);
  }
  static_cast<T*>(a.mish)[static_cast<size_t>(env) * a.mish_pitch + column] = FromFloat<T>(mish);
}

}  // namespace

void LaunchPrepare(Format format, const PrepareArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.frames * a.out_h * a.out_w + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16) return Launch(PrepareKernel<__half>, shape, stream, "prepare", a);
  if (format == Format::kBf16)
    return Launch(PrepareKernel<__nv_bfloat16>, shape, stream, "prepare", a);
  Launch(PrepareKernel<float>, shape, stream, "prepare", a);
}

void LaunchCondition(Format format, const ConditionArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.mish_pitch + kThreads - 1) / kThreads, a.environments);
  shape.block = dim3(kThreads);
  if (format == Format::kFp16)
    return Launch(ConditionKernel<__half>, shape, stream, "conditioning", a);
  if (format == Format::kBf16)
    return Launch(ConditionKernel<__nv_bfloat16>, shape, stream, "conditioning", a);
  Launch(ConditionKernel<float>, shape, stream, "conditioning", a);
}

}  // namespace dp
