#include "apps/bench/peer_torch.h"

#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>

namespace pusht {

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

std::vector<int64_t> PictureShape(const dp::PolicyConfig& config, int64_t frames) {
  const dp::EncoderConfig& encoder = config.encoder;
  const auto& camera = config.cameras.front();
  return {frames, 3, encoder.crop_height ? encoder.crop_height : camera.height,
          encoder.crop_width ? encoder.crop_width : camera.width};
}

}  // namespace pusht

extern "C" __attribute__((visibility("default"))) const size_t pusht_peer_layout =
    pusht::kPeerLayout;

extern "C" __attribute__((visibility("default"))) void pusht_peer_rows(
    const pusht::BenchOptions& options, pusht::BenchRows& rows) {
  const c10::InferenceMode no_gradients;
#ifdef PUSHT_HAVE_CUDA
  if (options.policy.backend != dp::Backend::kCpu && at::globalContext().hasCUDA())
    return pusht::AddTorchRowsCuda(options, rows);
#endif
  pusht::AddTorchRowsCpu(options, rows);
}
