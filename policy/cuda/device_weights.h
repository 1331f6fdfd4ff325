#ifndef POLICY_CUDA_DEVICE_WEIGHTS_H_
#define POLICY_CUDA_DEVICE_WEIGHTS_H_

#include <memory>
#include <vector>

#include "policy/cuda/encoder_layers.h"
#include "policy/cuda/unet/device_unet.h"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// All weights of a checkpoint in one format on the device; immutable once made.
class DeviceWeights {
 public:
  // The U-Net's weights lie as the persistent kernels read them, or as the convolutions do.
  DeviceWeights(std::shared_ptr<const Checkpoint> checkpoint, Format format, bool packed);

  // The one copy of (checkpoint, format, packed) in this process.
  static std::shared_ptr<const DeviceWeights> Get(std::shared_ptr<const Checkpoint> checkpoint,
                                                  Format format, bool packed);

  // Whether the device still holds every weight as it was uploaded.
  bool Intact() const { return arena_.HoldsUploads(); }

  bool packed() const { return packed_; }
  const DeviceUnet& unet() const { return unet_; }
  const NormConvUnet& norm_conv_unet() const { return norm_conv_unet_; }
  const std::vector<DeviceEncoder>& encoders() const { return encoders_; }
  const float* picture_tables() const { return picture_tables_; }  // PrepareArgs::table

 private:
  void Load(Format format);
  void PlantFault();

  std::shared_ptr<const Checkpoint> checkpoint_;
  DeviceArena arena_;
  bool packed_;
  DeviceUnet unet_;
  NormConvUnet norm_conv_unet_;
  std::vector<DeviceEncoder> encoders_;
  const float* picture_tables_ = nullptr;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DEVICE_WEIGHTS_H_
