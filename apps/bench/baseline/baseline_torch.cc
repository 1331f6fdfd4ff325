#include "apps/bench/baseline/baseline_torch.h"

#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "policy/unet/unet_model.h"

namespace mjp::app {

TorchChain::TorchChain(int steps, const at::Tensor& x) : x_(x), noise_(at::randn_like(x)) {
  timesteps_.reserve(steps);
  for (int t = steps - 1; t >= 0; --t)
    timesteps_.push_back(at::full({x.size(0)}, t, x.options().dtype(at::kLong)));
}

at::Tensor TorchChain::Run(const TorchPass& pass) const {
  at::Tensor x = x_;
  for (const at::Tensor& step : timesteps_) {
    const at::Tensor x0 = ((x - 0.6 * pass(x, step)) / 0.8).clamp(-1, 1);
    x = 0.5 * x0 + 0.4 * x + 0.1 * noise_;
  }
  return x;
}

bool AsksFor(const BenchOptions& options, const std::string& suite) {
  return std::ranges::find(options.suites, suite) != options.suites.end();
}

bool AsksForTransformersAlone(const BenchOptions& options) {
  const auto large = [](const std::string& suite) { return suite == "act" || suite == "dit"; };
  return !options.suites.empty() && std::ranges::all_of(options.suites, large);
}

Architecture ArchitectureOf(const mjp::Checkpoint& network) {
  Architecture architecture{mjp::UnetOf(network).config, network.stats, {}, {}};
  architecture.config.type = "diffusion";
  return architecture;
}

std::vector<int64_t> PictureShape(const mjp::UnetPolicyConfig& config, int64_t frames) {
  const mjp::EncoderConfig& encoder = config.encoder;
  const auto& camera = config.cameras.front();
  return {frames, 3, encoder.crop_height ? encoder.crop_height : camera.height,
          encoder.crop_width ? encoder.crop_width : camera.width};
}

}  // namespace mjp::app

extern "C" __attribute__((visibility("default"))) const size_t mjp_baseline_layout =
    mjp::app::kBaselineLayout;

extern "C" __attribute__((visibility("default"))) void mjp_baseline_rows(
    const mjp::app::BenchOptions& options, mjp::app::BenchRows& rows) {
  const c10::InferenceMode no_gradients;
#ifdef MJPOLICY_HAVE_CUDA
  if (options.policy.backend != mjp::Backend::kCpu && at::globalContext().hasCUDA())
    return mjp::app::AddTorchRowsCuda(options, rows);
#endif
  mjp::app::AddTorchRowsCpu(options, rows);
}
