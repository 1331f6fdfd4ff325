#include "apps/train/data/pictures.h"

#include "kernels/shared/crop.h"
#include "tasks/pusht/pictures/rasterise.h"
#if MJPOLICY_HAVE_CUDA
#include <c10/cuda/CUDAStream.h>

#include "tasks/pusht/pictures/rasterise_cuda.h"
#endif

namespace mjp::app {
namespace {

// Windows (N, height, width, 3) of pictures (N, H, W, 3), all of an observation's alike: from a
// random place inside, and up to `shift` pixels off it where `disturbed` (observations, 1) is 1;
// the border is repeated.
at::Tensor RandomWindows(const at::Tensor& pictures, const at::Tensor& disturbed, int64_t height,
                         int64_t width, int64_t shift) {
  const int64_t count = pictures.size(0), observations = disturbed.size(0);
  const auto longs = pictures.options().dtype(at::kLong);
  const auto places = [&](int64_t from, int64_t to) {
    const at::Tensor inside = at::randint(0, from - to + 1, {observations, 1}, longs);
    const at::Tensor off = at::randint(-shift, shift + 1, {observations, 1}, longs);
    const at::Tensor start = inside + off * disturbed.to(at::kLong);
    const at::Tensor cells =
        start.repeat_interleave(count / observations, 0, count) + at::arange(to, longs);
    return cells.clamp(0, from - 1);
  };
  const at::Tensor rows = places(pictures.size(1), height);
  const at::Tensor columns = places(pictures.size(2), width);
  return pictures.index({at::arange(count, longs).view({count, 1, 1}),
                         rows.view({count, height, 1}), columns.view({count, 1, width})});
}

}  // namespace

at::Tensor DrawPictures(const at::Tensor& scenes) {
  static_assert(sizeof(mjp::FlatScene) == 5 * sizeof(float), "a row of scenes is a FlatScene");
  const at::Tensor dense = scenes.contiguous();
  const int64_t count = dense.size(0);
  at::Tensor pictures =
      at::empty({count, mjp::kPictureSize, mjp::kPictureSize, 3}, dense.options().dtype(at::kByte));
  const auto* first = reinterpret_cast<const mjp::FlatScene*>(dense.const_data_ptr<float>());
  uint8_t* rgb = pictures.mutable_data_ptr<uint8_t>();
#if MJPOLICY_HAVE_CUDA
  if (dense.is_cuda()) {
    static const mjp::CudaRasteriser rasteriser;
    rasteriser.Draw(first, static_cast<int>(count), rgb, c10::cuda::getCurrentCUDAStream());
    return pictures;
  }
#endif
  mjp::RasteriseCpu(first, static_cast<int>(count), rgb);
  return pictures;
}

at::Tensor PreparePictures(const at::Tensor& pictures, int64_t steps,
                           const mjp::EncoderConfig& encoder,
                           const PictureAugmentation& augmentation, at::ScalarType type) {
  at::Tensor x = pictures;
  const int64_t count = x.size(0), observations = count / steps;
  const int64_t height = encoder.crop_height > 0 ? encoder.crop_height : x.size(1);
  const int64_t width = encoder.crop_width > 0 ? encoder.crop_width : x.size(2);
  const auto floats = x.options().dtype(at::kFloat);
  const at::Tensor disturbed =
      (at::rand({observations, 1}, floats) < augmentation.share).to(at::kFloat);
  if (height != x.size(1) || width != x.size(2) || augmentation.shift > 0) {
    x = RandomWindows(x, disturbed, height, width, augmentation.shift);
  }
  x = x.to(type);
  // one factor for each observation, spread over its pictures; none where it is not disturbed
  const auto spread = [&](const at::Tensor& factor) {
    return (factor * disturbed).repeat_interleave(steps, 0, count).view({count, 1, 1, 1}).to(type);
  };
  if (augmentation.brightness > 0) {
    const at::Tensor change = 2 * at::rand({observations, 1}, floats) - 1;
    x = x + x * spread(augmentation.brightness * change);
  }
  if (augmentation.noise > 0) {
    const at::Tensor sigma = augmentation.noise * at::rand({observations, 1}, floats);
    x = x + at::randn_like(x) * spread(sigma);
  }
  if (augmentation.brightness > 0 || augmentation.noise > 0) x = x.clamp(0, 255);
  return (x / 127.5 - 1).permute({0, 3, 1, 2});
}

at::Tensor CenterCrop(const at::Tensor& pictures, const mjp::EncoderConfig& encoder) {
  if (encoder.crop_height == 0) return pictures;
  const auto middle = [&](const at::Tensor& x, int64_t dimension, int crop) {
    const int from = mjp::CropOffset(static_cast<int>(x.size(dimension)), crop);
    return x.narrow(dimension, from, crop);
  };
  return middle(middle(pictures, 1, encoder.crop_height), 2, encoder.crop_width);
}

}  // namespace mjp::app
