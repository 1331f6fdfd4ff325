#include "policy/cuda/decision/picture_encoders.h"

#include <utility>

#include "kernels/cuda/sampler/conditioning.cuh"
#include "kernels/shared/crop.h"

namespace mjp {

PictureEncoders::PictureEncoders(const PolicyConfig& policy, const EncoderConfig& config,
                                 const std::vector<DeviceEncoder>& encoders, const float* tables,
                                 Format format, int environments,
                                 std::unique_ptr<const GpuSceneDrawer> drawer)
    : policy_(policy),
      config_(config),
      weights_(encoders),
      tables_(tables),
      format_(format),
      environments_(environments),
      drawer_(std::move(drawer)) {}

// What the encoder of camera `i` sees: a crop of its picture, or all of it.
int PictureEncoders::Height(int i) const {
  return config_.crop_height ? config_.crop_height : policy_.cameras[i].height;
}
int PictureEncoders::Width(int i) const {
  return config_.crop_width ? config_.crop_width : policy_.cameras[i].width;
}

int PictureEncoders::Frames() const {
  const int cameras = static_cast<int>(policy_.cameras.size());
  return environments_ * policy_.n_obs_steps * cameras / static_cast<int>(weights_.size());
}

void PictureEncoders::Plan(DeviceArena& arena) {
  encoders_.clear();
  const int encoders = static_cast<int>(weights_.size());
  for (int i = 0; i < encoders; ++i) {
    encoders_.push_back(std::make_unique<EncoderLayers>(weights_[i], config_, format_, Frames(),
                                                        Height(i), Width(i), arena));
  }
}

void PictureEncoders::Draw(PictureSource source, const InputBlock& input,
                           cudaStream_t stream) const {
  if (source != PictureSource::kScenes) return;
  drawer_->EnqueueDraw(input.device().scenes, environments_ * policy_.n_obs_steps,
                       input.device_frames(), stream);
}

void PictureEncoders::Prepare(PictureSource source, const InputBlock& input,
                              cudaStream_t stream) const {
  if (source == PictureSource::kNone) return;
  for (int i = 0; i < parts(); ++i) {
    PrepareArgs a;
    a.cameras = static_cast<int>(policy_.cameras.size());
    a.in_stride = parts() == 1 ? 1 : a.cameras;
    a.in_first = i;
    a.frames = Frames();
    a.in_h = policy_.cameras[i].height, a.in_w = policy_.cameras[i].width;
    a.out_h = Height(i), a.out_w = Width(i);
    a.top = CropOffset(a.in_h, a.out_h), a.left = CropOffset(a.in_w, a.out_w);
    a.rgb = input.device_frames();
    a.table = tables_;
    a.y = encoders_[i]->input();
    a.space_to_depth = weights_[i].space_to_depth;
    LaunchPrepare(format_, a, stream);
  }
}

void PictureEncoders::Encode(PictureSource source, cudaStream_t stream) const {
  if (source == PictureSource::kNone) return;
  for (const auto& encoder : encoders_) encoder->Run(stream);
}

size_t PictureEncoders::part_stride() const {
  return parts() > 1 ? encoders_[1]->features() - encoders_[0]->features() : 0;
}

int PictureEncoders::width() const {
  return config_.feature_dim * static_cast<int>(policy_.cameras.size());
}

}  // namespace mjp
