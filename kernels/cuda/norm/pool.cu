// Max-pool, average pool and spatial softmax: a thread per output pack or channel, sums over the
// cells in their order. Bound by latency; together under a hundredth of the encoder's bytes.

#include "kernels/cuda/norm/pool.cuh"
#include "kernels/cuda/norm/spatial_softmax.cuh"
#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 128;
constexpr int kPack = 8;

template <typename T>
__global__ void MaxPoolKernel(const MaxPoolArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int packs = a.channels / kPack;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.frames * a.out_h * a.out_w * packs) return;
  const int c = i % packs * kPack, ox = i / packs % a.out_w;
  const int oy = i / packs / a.out_w % a.out_h, frame = i / packs / a.out_w / a.out_h;
  float best[kPack];
  for (float& b : best) b = -INFINITY;
  for (int y = max(oy * 2 - 1, 0); y <= min(oy * 2 + 1, a.in_h - 1); ++y) {
    for (int x = max(ox * 2 - 1, 0); x <= min(ox * 2 + 1, a.in_w - 1); ++x) {
      const size_t at = ((static_cast<size_t>(frame) * a.in_h + y) * a.in_w + x) * a.channels + c;
      const auto pack = *reinterpret_cast<const Pack<T, kPack>*>(static_cast<const T*>(a.x) + at);
      for (int v = 0; v < kPack; ++v) best[v] = fmaxf(best[v], ToFloat(pack.v[v]));
    }
  }
  Pack<T, kPack> out;
  for (int v = 0; v < kPack; ++v) out.v[v] = FromFloat<T>(best[v]);
  reinterpret_cast<Pack<T, kPack>*>(a.y)[i] = out;
}

template <typename T>
__global__ void AveragePoolKernel(const T* x, int frames, int cells, int channels,
                                  float* features) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= frames * channels) return;
  const T* at = x + static_cast<size_t>(i / channels) * cells * channels + i % channels;
  float sum = 0.0f;
  for (int cell = 0; cell < cells; ++cell) sum += ToFloat(at[static_cast<size_t>(cell) * channels]);
  features[i] = sum / static_cast<float>(cells);
}

template <typename T>
__global__ void SpatialSoftmaxKernel(const float* logits, const float* pos_grid, int frames,
                                     int cells, int keypoints, T* out) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= frames * keypoints) return;
  const float* at = logits + static_cast<size_t>(i / keypoints) * cells * keypoints + i % keypoints;
  const float2 point = SpatialSoftmax(at, keypoints, cells, pos_grid);
  out[2 * i] = FromFloat<T>(point.x);
  out[2 * i + 1] = FromFloat<T>(point.y);
}

LaunchShape ThreadPer(int count) {
  LaunchShape shape;
  shape.grid = dim3((count + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  return shape;
}

template <typename T>
void AveragePool(const void* x, int frames, int cells, int channels, float* features,
                 cudaStream_t stream) {
  Launch(AveragePoolKernel<T>, ThreadPer(frames * channels), stream, "average pool",
         static_cast<const T*>(x), frames, cells, channels, features);
}

template <typename T>
void LaunchSoftmax(const float* logits, const float* grid, int frames, int cells, int keypoints,
                   void* out, cudaStream_t stream) {
  Launch(SpatialSoftmaxKernel<T>, ThreadPer(frames * keypoints), stream, "spatial softmax", logits,
         grid, frames, cells, keypoints, static_cast<T*>(out));
}

}  // namespace

void LaunchMaxPool(Format format, const MaxPoolArgs& a, cudaStream_t stream) {
  const LaunchShape shape = ThreadPer(a.frames * a.out_h * a.out_w * (a.channels / kPack));
  if (format == Format::kFp16) return Launch(MaxPoolKernel<__half>, shape, stream, "max-pool", a);
  if (format == Format::kBf16)
    return Launch(MaxPoolKernel<__nv_bfloat16>, shape, stream, "max-pool", a);
  Launch(MaxPoolKernel<float>, shape, stream, "max-pool", a);
}

void LaunchAveragePool(Format format, const void* x, int frames, int cells, int channels,
                       float* features, cudaStream_t stream) {
  if (format == Format::kFp16)
    return AveragePool<__half>(x, frames, cells, channels, features, stream);
  if (format == Format::kBf16)
    return AveragePool<__nv_bfloat16>(x, frames, cells, channels, features, stream);
  AveragePool<float>(x, frames, cells, channels, features, stream);
}

void LaunchSpatialSoftmax(Format format, const float* logits, const float* pos_grid, int frames,
                          int cells, int keypoints, void* out, cudaStream_t stream) {
  if (format == Format::kFp16)
    return LaunchSoftmax<__half>(logits, pos_grid, frames, cells, keypoints, out, stream);
  if (format == Format::kBf16)
    return LaunchSoftmax<__nv_bfloat16>(logits, pos_grid, frames, cells, keypoints, out, stream);
  LaunchSoftmax<float>(logits, pos_grid, frames, cells, keypoints, out, stream);
}

}  // namespace mjp
