#ifndef TESTS_SUPPORT_MEGAKERNEL_NETWORK_H_
#define TESTS_SUPPORT_MEGAKERNEL_NETWORK_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/reference/megakernel_interpreter.h"
#include "policy/cuda/unet/megakernel_layers.h"
#include "policy/unet/unet_model.h"

// The megakernel's layers of a U-Net, planned without a device.

namespace mjp_test {

// Tensors of zeros. Large convolutions have shapes alone: plans look at nothing else.
class Shapes : public mjp::TensorSource {
 public:
  mjp::Tensor Take(const std::string&, const std::vector<int64_t>& shape) override {
    size_t size = 1;
    for (const int64_t d : shape) size *= d;
    mjp::Tensor tensor;
    tensor.shape = shape;
    if (shape.size() < 3 || size < kLarge) tensor.data.resize(size);
    return tensor;
  }
  void Discard(const std::string&) override {}

 private:
  static constexpr size_t kLarge = 1 << 16;
};

// A U-Net as it is planned.
class PlannedUnet {
 public:
  explicit PlannedUnet(const std::vector<int>& down_dims, int horizon = 16) : horizon_(horizon) {
    const auto network = std::make_shared<mjp::UnetModel>();
    mjp::UnetPolicyConfig& config = network->config;
    config.type = "diffusion";
    config.state_dim = config.action_dim = 2;
    config.environment_dim = 5;
    config.horizon = horizon;
    config.unet.down_dims = down_dims;
    config.unet.step_embed_dim = 16;
    Shapes shapes;
    network->TakeTensors(shapes);
    checkpoint_.config = config;
    checkpoint_.network = network;
    mjp::LayerLoader loader(weights_, mjp::Format::kFp16);
    unet_ = mjp::LoadNormConvUnet(loader, checkpoint_, true);
  }

  // What the kernel is launched with for so many rows, of windows of `window` steps. runs: whether
  // it runs them.
  // ctas: of the portable form; 0: of Hopper's.
  mjp::reference::MegakernelProgram Program(int rows, int window, bool* runs, int ctas = 0) const {
    mjp::DeviceArena arena;
    arena.TakeBytes(1);  // or the first activations would stand at null
    mjp::megakernel::Target target;
    target.portable = ctas > 0, target.shared_bytes = mjp::kMaxSharedBytesSm90;
    if (target.portable) target.ctas = ctas;
    const mjp::MegakernelPlan plan =
        mjp::PlanMegakernel(unet_, mjp::Format::kFp16, horizon_, rows, std::max(1, window), target);
    const mjp::MegakernelLayers planned(unet_, mjp::Format::kFp16, plan, arena);
    *runs = plan.supported;
    mjp::reference::MegakernelProgram program;
    program.layers = planned.layers();
    program.warp_specialized = plan.warp_specialized;
    program.row_batches = rows > mjp::megakernel::kRowsPerBatch ? 2 : 1;
    program.rows = rows, program.window = window, program.ctas = ctas;
    if (plan.portable) program.row_slots = 1 << plan.portable->row_slots_log2;
    return program;
  }

  const mjp::NormConvUnet& unet() const { return unet_; }
  int horizon() const { return horizon_; }
  const mjp::UnetPolicyConfig& config() const { return mjp::UnetOf(checkpoint_).config; }

 private:
  int horizon_;
  mjp::Checkpoint checkpoint_;
  mjp::DeviceArena weights_;  // measures
  mjp::NormConvUnet unet_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_MEGAKERNEL_NETWORK_H_
