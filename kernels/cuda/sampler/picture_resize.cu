// Normalise, resize and crop: a thread for each pixel of the result, which sums its taps of all
// rows. Pictures are read from the cache several times; there are few of them.

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/picture_resize.cuh"
#include "kernels/cuda/sampler/store_pixel.cuh"

namespace mjp {
namespace {

constexpr int kThreads = 128;

template <typename T>
__global__ void __launch_bounds__(kThreads) PrepareResizedKernel(const PrepareResizedArgs args) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const PrepareArgs& a = args.picture;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.frames * a.out_h * a.out_w) return;
  const int x = i % a.out_w, y = i / a.out_w % a.out_h, frame = i / a.out_w / a.out_h;
  const int row0 = args.y.first[a.top + y], column0 = args.x.first[a.left + x];
  const float* of_rows = args.y.weights + (a.top + y) * args.y.taps;
  const float* of_columns = args.x.weights + (a.left + x) * args.x.taps;
  const int picture = a.Input(frame);
  const float* table = a.TableOf(picture);
  const uint8_t* rgb = a.rgb + static_cast<size_t>(picture) * a.in_h * a.in_w * 3;
  float sum[3] = {0, 0, 0};
  for (int r = 0; r < args.y.taps; ++r) {
    if (of_rows[r] == 0.0f) continue;
    float row[3] = {0, 0, 0};
    for (int k = 0; k < args.x.taps; ++k) {
      if (of_columns[k] == 0.0f) continue;
      const uint8_t* pixel = rgb + (static_cast<size_t>(row0 + r) * a.in_w + column0 + k) * 3;
      for (int c = 0; c < 3; ++c) row[c] += of_columns[k] * table[c * 256 + pixel[c]];
    }
    for (int c = 0; c < 3; ++c) sum[c] += of_rows[r] * row[c];
  }
  const T stored[3] = {FromFloat<T>(sum[0]), FromFloat<T>(sum[1]), FromFloat<T>(sum[2])};
  StorePixel(a, frame, y, x, stored);
}

}  // namespace

void LaunchPrepareResized(Format format, const PrepareResizedArgs& args, cudaStream_t stream) {
  const PrepareArgs& a = args.picture;
  LaunchShape shape;
  shape.grid = dim3((a.frames * a.out_h * a.out_w + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  const auto launch = [&](auto kernel) { Launch(kernel, shape, stream, "resize", args); };
  if (format == Format::kFp16) return launch(PrepareResizedKernel<__half>);
  if (format == Format::kBf16) return launch(PrepareResizedKernel<__nv_bfloat16>);
  launch(PrepareResizedKernel<float>);
}

}  // namespace mjp
