#include "policy/cpu/picture_input.h"

#include "kernels/shared/crop.h"
#include "policy/checkpoint/normalizer.h"

namespace mjp::cpu {
namespace {

// The normaliser's own results for every byte of every channel.
std::vector<float> ByteTable(const FeatureStats& stats) {
  std::vector<float> table(3 * 256);
  for (int c = 0; c < 3; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      table[c * 256 + byte] = Normalize(stats, c, static_cast<float>(byte) / 255.0f);
    }
  }
  return table;
}

}  // namespace

PictureInput::PictureInput(const CameraFeature& camera, const FeatureStats& stats,
                           const PictureSteps& steps, int frames, int halo, ThreadPool& pool)
    : camera_(camera), steps_(steps), pool_(pool), table_(ByteTable(stats)) {
  int height = camera.height, width = camera.width;
  if (steps.resize_height > 0) {
    height = steps.resize_height;
    width = steps.resize_width;
    resize_y_ = MakeResizeTaps(camera.height, height);
    resize_x_ = MakeResizeTaps(camera.width, width);
    scratch_pitch_ = size_t{3} * camera.height * width;
    scratch_ = AlignedBuffer(scratch_pitch_ * pool.threads());
  }
  if (steps.crop_height > 0) {
    height = steps.crop_height;
    width = steps.crop_width;
  }
  pictures_ = MakeFeatures(frames, height, width, 3, halo, halo);
}

void PictureInput::Prepare(const uint8_t* rgb, int64_t frame_stride, int count) {
  const bool resized = steps_.resize_height > 0;
  PrepareArgs args;
  args.rgb = rgb;
  args.frame_stride = frame_stride;
  args.height = camera_.height;
  args.width = camera_.width;
  args.table = table_.data();
  args.resize_y = resized ? &resize_y_ : nullptr;
  args.resize_x = resized ? &resize_x_ : nullptr;
  args.y = pictures_.view;
  args.top = CropOffset(resized ? steps_.resize_height : camera_.height, args.y.height);
  args.left = CropOffset(resized ? steps_.resize_width : camera_.width, args.y.width);
  pool_.Run([&](int part) {
    const int begin = count * part / pool_.threads(), end = count * (part + 1) / pool_.threads();
    cpu::Prepare(args, begin, end, scratch_.data() + part * scratch_pitch_);
  });
}

}  // namespace mjp::cpu
