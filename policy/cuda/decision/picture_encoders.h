#ifndef POLICY_CUDA_DECISION_PICTURE_ENCODERS_H_
#define POLICY_CUDA_DECISION_PICTURE_ENCODERS_H_

#include <memory>
#include <vector>

#include "policy/cuda/decision/input_block.h"
#include "policy/cuda/encoder_layers.h"
#include "policy/scene_drawer.h"

namespace mjp {

// A decision's pictures, from scenes or frames to features: one encoder, or one for each camera.
class PictureEncoders {
 public:
  // A policy with such encoders, whose pictures are normalised by `tables` (PrepareArgs::table);
  // these arguments outlive it. `drawer` draws scenes; may be null.
  PictureEncoders(const PolicyConfig& policy, const EncoderConfig& config,
                  const std::vector<DeviceEncoder>& encoders, const float* tables, Format format,
                  int environments, std::unique_ptr<const GpuSceneDrawer> drawer);

  // Places the encoders' memory. Throws Error for a shape that no kernel supports.
  void Plan(DeviceArena& arena);
  // Enqueue one stage each, and nothing where there are no pictures: scenes to frames, frames to
  // the encoders' input, that to features.
  void Draw(PictureSource source, const InputBlock& input, cudaStream_t stream) const;
  void Prepare(PictureSource source, const InputBlock& input, cudaStream_t stream) const;
  void Encode(PictureSource source, cudaStream_t stream) const;

  int parts() const { return static_cast<int>(encoders_.size()); }
  // (environments, steps, width / parts) of each part, `part_stride` values apart.
  const float* features() const { return encoders_.front()->features(); }
  size_t part_stride() const;
  int width() const;  // features of one step

 private:
  int Height(int encoder) const;
  int Width(int encoder) const;
  int Frames() const;  // that one encoder reads

  const PolicyConfig& policy_;
  const EncoderConfig& config_;
  const std::vector<DeviceEncoder>& weights_;
  const float* const tables_;
  Format format_;
  int environments_;
  std::unique_ptr<const GpuSceneDrawer> drawer_;
  std::vector<std::unique_ptr<EncoderLayers>> encoders_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DECISION_PICTURE_ENCODERS_H_
