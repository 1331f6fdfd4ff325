// On the CPU: the U-Net and the picture encoder eager, and as the frozen graph that libtorch makes
// of them. Chunks of both and of this project's policy are taken in turn.

#include <ATen/Parallel.h>

#include "apps/bench/baseline/baseline_torch.h"
#include "apps/bench/baseline/torch_cpu.h"
#include "apps/bench/observations.h"
#include "policy/unet/unet_model.h"

namespace mjp::app {
namespace {

class Baseline {
 public:
  Baseline(const BenchOptions& options, BenchRows& rows)
      : options_(options),
        config_(mjp::UnetOf(*options.network).config),
        parameters_(ArchitectureOf(*options.network), 1, 0, at::kCPU, at::kFloat),
        network_(config_, parameters_, /*fused=*/false),
        rows_(rows) {
    parameters_.Freeze();
  }

  void Run() {
    const int64_t batch = options_.policy.batch, frames = batch * config_.n_obs_steps;
    const at::Tensor x = at::randn({batch, config_.horizon, config_.action_dim});
    const at::Tensor cond = at::randn({batch, config_.CondDim()});
    const at::Tensor step = at::full({batch}, 50, at::kLong);
    const TensorFunction unet = [&](const std::vector<at::Tensor>& inputs) {
      return network_.Denoise(inputs[0], inputs[1], inputs[2]);
    };
    const TensorFunction frozen = Frozen(unet, {x, step, cond});
    AddBoth("U-Net pass, batch " + std::to_string(batch), batch, "rows", unet, frozen,
            {x, step, cond});
    AddChunks(x, cond, unet, frozen);
    if (config_.cameras.empty()) return;
    const at::Tensor pictures = at::randn(PictureShape(config_, frames));
    const TensorFunction encode = [&](const std::vector<at::Tensor>& inputs) {
      return network_.Encode(inputs[0]);
    };
    AddBoth("encoder, " + std::to_string(frames) + " frames", static_cast<double>(frames), "frames",
            encode, Frozen(encode, {pictures}), {pictures});
  }

 private:
  void AddBoth(const std::string& name, double items, const std::string& unit,
               const TensorFunction& eager, const TensorFunction& frozen,
               const std::vector<at::Tensor>& inputs) {
    const std::string how[] = {"torch, eager fp32: ", "torch, frozen fp32: "};
    const TensorFunction* functions[] = {&eager, &frozen};
    for (int i = 0; i < 2; ++i)
      rows_.push_back(Measure("baseline", how[i] + name, options_.seconds, items, unit,
                              [&] { (*functions[i])(inputs); }));
  }

  // Chunks of this project's sampler as asked for, and of libtorch's step by step.
  void AddChunks(const at::Tensor& x, const at::Tensor& cond, const TensorFunction& eager,
                 const TensorFunction& frozen) {
    const auto policy = mjp::Policy::Create(options_.network, options_.policy);
    BenchObservations observations(*options_.network, options_.policy.batch);
    mjp::PolicyOutput output;
    const int steps = policy->options().sampler.steps;
    const TorchChain chain(steps, x);
    const auto chunk_of = [&](const TensorFunction& unet) {
      chain.Run([&](const at::Tensor& at, const at::Tensor& step) {
        return unet({at, step, cond});
      });
    };
    const std::vector<Contender> contenders = {
        {"this project", [&] { policy->Infer(observations.NextChunk(), output); }},
        {"torch, eager fp32", [&] { chunk_of(eager); }},
        {"torch, frozen fp32", [&] { chunk_of(frozen); }}};
    AddInTurn("chunk, " + std::to_string(steps) + " steps", contenders, options_, rows_);
    const auto ours = rows_.end() - static_cast<int64_t>(contenders.size());
    ours->note = std::to_string(output.times.passes) + " passes, " + ours->note;
  }

  const BenchOptions& options_;
  const mjp::UnetPolicyConfig& config_;
  Parameters parameters_;
  Network network_;
  BenchRows& rows_;
};

}  // namespace

void AddTorchRowsCpu(const BenchOptions& options, BenchRows& rows) {
  at::set_num_threads(options.policy.threads);
  BenchOptions on_cpu = options;
  on_cpu.policy.backend = mjp::Backend::kCpu;
  AddTorchTransformersCpu(on_cpu, rows);
  if (!AsksForTransformersAlone(on_cpu)) Baseline(on_cpu, rows).Run();
}

}  // namespace mjp::app
