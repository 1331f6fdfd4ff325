#include "apps/image_diffusion/torch_unet.h"

#include <torch/cuda.h>

namespace mjp::app {

TorchUnet::TorchUnet(const mjp::ImageConfig& config, const Parameters& parameters, bool fused)
    : Layers(parameters, fused), config_(config) {
  step_embedding_ = StepEmbedding(config.scheduler.train_steps, config.unet.step_embed_dim)
                        .to(parameters.device());
  // tensor cores want channels in eights
  pad_ = fused && parameters.device().is_cuda() && config.unet.down_dims[0] > 8;
}

at::Tensor TorchUnet::Denoise(const at::Tensor& x, const at::Tensor& t) const {
  const int64_t groups = config_.unet.groups;
  const size_t levels = config_.unet.down_dims.size();
  at::Tensor embedding = step_embedding_.index_select(0, t).to(x.scalar_type());
  embedding = at::mish(Linear("diffusion_step_encoder.1", embedding));
  embedding = at::mish(Linear("diffusion_step_encoder.3", embedding));
  const auto block = [&](const std::string& name, const at::Tensor& map) {
    return ResidualBlock(name, map, embedding, groups);
  };
  at::Tensor h = pad_ ? at::constant_pad_nd(x, {0, 0, 0, 0, 0, 8 - x.size(1)}) : x;
  std::vector<at::Tensor> skips;
  for (size_t i = 0; i < levels; ++i) {
    const std::string level = "down_modules." + std::to_string(i) + ".";
    h = block(level + "1", block(level + "0", h));
    skips.push_back(h);
    if (i + 1 < levels) h = Conv(level + "2", h, 2);
  }
  h = block("mid_modules.1", block("mid_modules.0", h));
  for (size_t i = 0; i < levels; ++i) {
    const std::string level = "up_modules." + std::to_string(i) + ".";
    h = block(level + "1", block(level + "0", at::cat({h, skips.back()}, 1)));
    skips.pop_back();
    if (i + 1 == levels) break;
    h = Conv(level + "2", at::upsample_nearest2d(h, {2 * h.size(2), 2 * h.size(3)}), 1);
  }
  h = Activate(
      Norm("final_conv.0.block.1", Conv("final_conv.0.block.0", h, 1), groups, Activation::kMish));
  return Conv("final_conv.1", h, 1);
}

NamedTensors TensorsOf(const mjp::ImageModel& model) {
  NamedTensors tensors;
  mjp::VisitUnet(mjp::ImageNames(), model.unet,
                 [&](const std::string& name, const mjp::Tensor& tensor) {
                   tensors.push_back({name, tensor});
                 });
  return tensors;
}

at::Device DefaultDevice() {
#if MJPOLICY_HAVE_CUDA
  if (torch::cuda::is_available()) return {at::kCUDA, 0};
#endif
  return at::kCPU;
}

}  // namespace mjp::app
