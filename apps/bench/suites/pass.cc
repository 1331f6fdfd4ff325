#include "apps/bench/device.h"
#include "policy/cpu/encoder.h"
#include "policy/cpu/unet.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

BenchRows BenchPassCpu(const BenchOptions& options) {
  const mjp::UnetModel& network = mjp::UnetOf(*options.network);
  const mjp::UnetPolicyConfig& config = network.config;
  const int batch = options.policy.batch;
  mjp::cpu::ThreadPool pool(options.policy.threads);
  mjp::cpu::Unet unet(mjp::cpu::PackUnet(config, network.unet), config, {0}, batch, batch, pool);
  const std::vector<float> cond(size_t{1} * batch * config.CondDim(), 0.1f);
  std::vector<float> x(size_t{1} * batch * config.horizon * config.action_dim, 0.2f);
  std::vector<float> output(x.size());
  const std::vector<int> step(batch, 0);
  std::vector<int> environment(batch);
  for (int i = 0; i < batch; ++i) environment[i] = i;
  unet.SetConditioning(cond, batch);
  BenchRows rows;
  rows.push_back(Measure(
      "pass", "U-Net pass, batch " + std::to_string(batch), options.seconds, batch, "rows",
      [&] { unet.Forward(x.data(), step.data(), environment.data(), batch, output.data()); }));
  if (config.cameras.empty()) return rows;
  constexpr int kFrames = 2;
  mjp::cpu::Encoder encoder(mjp::cpu::PackEncoder(config.encoder, network.encoders.front()),
                            config.encoder, config.cameras.front(),
                            options.network->stats.cameras.front(), kFrames, pool);
  const int64_t picture = int64_t{config.cameras[0].height} * config.cameras[0].width * 3;
  const std::vector<uint8_t> frames(kFrames * picture, 100);
  std::vector<float> features(size_t{kFrames} * config.encoder.feature_dim);
  encoder.Prepare(frames.data(), picture, kFrames);
  rows.push_back(Measure("pass", "encoder, 2 frames", options.seconds, kFrames, "frames",
                         [&] { encoder.Encode(kFrames, features.data()); }));
  return rows;
}

}  // namespace

BenchRows BenchPass(const BenchOptions& options) {
  BenchRows rows;
  if (mjp::FindUnet(*options.network) == nullptr)
    return {Skipped("pass", "U-Net pass", "this policy has no U-Net")};
  if (OnCpu(options)) rows = BenchPassCpu(options);
  return Joined(rows, OnGpu(options, "pass", BenchPassCuda));
}

}  // namespace mjp::app
