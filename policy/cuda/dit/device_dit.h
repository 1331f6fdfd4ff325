#ifndef POLICY_CUDA_DIT_DEVICE_DIT_H_
#define POLICY_CUDA_DIT_DEVICE_DIT_H_

#include <memory>
#include <vector>

#include "kernels/cuda/sampler/picture_resize.cuh"
#include "policy/cuda/encoder_layers.h"
#include "policy/cuda/transformer/token_stream.h"
#include "policy/dit/dit_model.h"

namespace mjp {

struct DeviceClipLayer {
  DeviceLayerNorm norm1, norm2;
  DeviceNormedLinear qkv, fc1;  // q, k and v side by side
  DeviceConv out, fc2;
};

struct DeviceVision {
  DeviceConv patches;  // (width, patch * patch * 3): a linear layer of rows of PrepareArgs::patch
  const float* first = nullptr;  // (tokens, width): the positions, and the class token at the front
  DeviceLayerNorm pre_norm;
  std::vector<DeviceClipLayer> layers;
};

struct DeviceDitBlock {
  DeviceConv qkv, out, mlp1, mlp2;
};

// All weights of a multi_task_dit or dit_compact checkpoint in one format on the device, but for
// the text's tower, which runs on the CPU; immutable once made.
class DeviceDit {
 public:
  DeviceDit(std::shared_ptr<const Checkpoint> checkpoint, Format format);
  // The one copy of (checkpoint, format) in this process.
  static std::shared_ptr<const DeviceDit> Get(const std::shared_ptr<const Checkpoint>& checkpoint,
                                              Format format);

  bool Intact() const { return arena_.HoldsUploads(); }

  const float* picture_tables = nullptr;             // PrepareArgs::table
  std::vector<DeviceResizeTaps> resize_x, resize_y;  // of each camera; empty: not resized
  std::vector<DeviceEncoder> encoders;               // of dit_compact: one
  std::vector<DeviceVision> vision;                  // one, or one per camera
  DeviceConv input, output;                          // the first without its bias
  const float* input_bias = nullptr;  // (horizon, hidden): with the position embedding
  // Of the modulation of all blocks, (blocks * 6 hidden, columns): those of each step's state and
  // pictures, and those of its text. Without text the second is not there.
  DeviceConv condition, text_condition;
  const float *cosines = nullptr, *sines = nullptr;  // rotary embedding; null: none
  std::vector<DeviceDitBlock> blocks;

 private:
  void Load(Format format);
  void LoadPictures(LayerLoader& loader);
  void LoadTrunk(LayerLoader& loader);

  const std::shared_ptr<const Checkpoint> checkpoint_;
  DeviceArena arena_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_DEVICE_DIT_H_
