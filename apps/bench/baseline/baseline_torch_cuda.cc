// On the GPU: the U-Net and the picture encoder eager and as captured graphs, with cuDNN's own
// choice of algorithms, weights channel-last in the working type.

#include <ATen/Context.h>

#include "apps/bench/baseline/baseline_torch.h"
#include "apps/bench/baseline/torch_timer.h"
#include "apps/bench/baseline/torch_transformers.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

class Baseline {
 public:
  Baseline(const BenchOptions& options, const TorchFormat& format, BenchRows& rows)
      : options_(options),
        config_(mjp::UnetOf(*options.network).config),
        format_(format),
        on_device_(at::device({at::kCUDA, 0}).dtype(format.type)),
        parameters_(ArchitectureOf(*options.network), 1, 0, on_device_.device(), format.type),
        network_(config_, parameters_, /*fused=*/false),
        rows_(rows) {}

  void Run() {
    const int64_t batch = options_.policy.batch, frames = batch * config_.n_obs_steps;
    x_ = at::randn({batch, config_.horizon, config_.action_dim}, on_device_);
    const at::Tensor cond = at::randn({batch, config_.CondDim()}, on_device_);
    const at::Tensor step = at::full({batch}, 50, on_device_.dtype(at::kLong));
    const std::string size = ", batch " + std::to_string(batch);
    Add("U-Net pass" + size, batch, "rows", [&] { network_.Denoise(x_, step, cond); });
    if (batch == 1) AddChunk(cond);
    if (config_.cameras.empty()) return;
    const at::Tensor pictures = at::randn(PictureShape(config_, frames), on_device_)
                                    .contiguous(at::MemoryFormat::ChannelsLast);
    Add("encoder, " + std::to_string(frames) + " frames", static_cast<double>(frames), "frames",
        [&] { network_.Encode(pictures); });
  }

 private:
  void AddChunk(const at::Tensor& cond) {
    constexpr int kSteps = 100;
    const TorchChain chain(kSteps, x_);
    const auto pass = [&](const at::Tensor& x, const at::Tensor& step) {
      return network_.Denoise(x, step, cond);
    };
    Add("chunk, 100 steps", 1, "chunks", [&] { chain.Run(pass); });
  }

  void Add(const std::string& name, double items, const std::string& unit,
           const std::function<void()>& work) {
    AddTorchWork(format_, name, items, unit, options_.seconds, work, rows_);
  }

  const BenchOptions& options_;
  const mjp::UnetPolicyConfig& config_;
  TorchFormat format_;
  at::TensorOptions on_device_;
  Parameters parameters_;
  Network network_;
  at::Tensor x_;
  BenchRows& rows_;
};

void AddAct(const BenchOptions& options, const TorchFormat& format, BenchRows& rows) {
  const auto on_device = at::device({at::kCUDA, 0}).dtype(format.type);
  const TorchActPass network = MakeTorchAct(on_device, /*channels_last=*/true);
  for (const int64_t batch : {1, 64}) {
    const at::Tensor pictures =
        at::randn({batch, 3, 480, 640}, on_device).contiguous(at::MemoryFormat::ChannelsLast);
    AddTorchWork(
        format, "ACT, pictures on the GPU to chunks, batch " + std::to_string(batch),
        static_cast<double>(batch), "chunks", options.seconds, [&] { network(pictures); }, rows);
  }
}

void AddDit(const BenchOptions& options, const TorchFormat& format, BenchRows& rows) {
  constexpr int kSteps = 100;
  const auto on_device = at::device({at::kCUDA, 0}).dtype(format.type);
  const TorchDitPass network = MakeTorchDit(on_device);
  const at::Tensor condition = at::randn({1, kTorchDitCondition}, on_device);
  const TorchChain chain(kSteps, at::randn({1, kTorchDitHorizon, kTorchDitActions}, on_device));
  const auto pass = [&](const at::Tensor& x, const at::Tensor& step) {
    return network(x, step, condition);
  };
  AddTorchWork(
      format, "DiT, features to chunk, 100 steps", 1, "chunks", options.seconds,
      [&] { chain.Run(pass); }, rows);
}

}  // namespace

void AddTorchRowsCuda(const BenchOptions& options, BenchRows& rows) {
  at::globalContext().setBenchmarkCuDNN(true);
  at::globalContext().setFloat32MatmulPrecision("high");
  at::globalContext().setAllowTF32CuDNN(true);
  for (const TorchFormat& format : kTorchFormats) {
    if (AsksFor(options, "act")) AddAct(options, format, rows);
    if (AsksFor(options, "dit")) AddDit(options, format, rows);
  }
  if (AsksForTransformersAlone(options)) return;
  for (const TorchFormat& format : kTorchFormats) Baseline(options, format, rows).Run();
}

}  // namespace mjp::app
