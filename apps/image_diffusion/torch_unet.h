#ifndef APPS_IMAGE_DIFFUSION_TORCH_UNET_H_
#define APPS_IMAGE_DIFFUSION_TORCH_UNET_H_

#include "apps/train/network/layers.h"
#include "image_diffusion/model.h"

namespace mjp::app {

// The image U-Net (image_diffusion/model.h) on libtorch: what is trained, and the reference.
class TorchUnet : private Layers {
 public:
  // Both must outlive the network. `fused`: for training, see Layers.
  TorchUnet(const mjp::ImageConfig& config, const Parameters& parameters, bool fused);

  // The predicted noise in x (B, channels, size, size) at timesteps t (B), int64.
  at::Tensor Denoise(const at::Tensor& x, const at::Tensor& t) const;

 private:
  const mjp::ImageConfig& config_;
  bool pad_;
  at::Tensor step_embedding_;  // (train_steps, step_embed_dim), float32
};

// The tensors of a model by name.
NamedTensors TensorsOf(const mjp::ImageModel& model);

// The GPU where there is one.
at::Device DefaultDevice();

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_TORCH_UNET_H_
