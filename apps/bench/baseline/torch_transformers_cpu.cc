#include "apps/bench/baseline/baseline_torch.h"
#include "apps/bench/baseline/torch_cpu.h"
#include "apps/bench/baseline/torch_transformers.h"
#include "apps/bench/default_networks.h"
#include "apps/bench/observations.h"

namespace mjp::app {
namespace {

constexpr char kOurs[] = "this project";

void AddAct(const BenchOptions& options, BenchRows& rows) {
  const auto network = DefaultAct();
  const auto policy = mjp::Policy::Create(network, options.policy);
  BenchObservations observations(*network, 1);
  mjp::PolicyOutput output;
  const auto floats = at::TensorOptions(at::kFloat);
  const at::Tensor pictures = at::randn({1, 3, 480, 640}, floats);
  const at::Tensor last = pictures.contiguous(at::MemoryFormat::ChannelsLast);
  const TorchActPass plain = MakeTorchAct(floats, false), channels = MakeTorchAct(floats, true);
  const TensorFunction frozen =
      Frozen([&](const std::vector<at::Tensor>& x) { return plain(x[0]); }, {pictures});
  AddInTurn("ACT, picture to chunk",
            {{kOurs, [&] { policy->Infer(observations.Next(), output); }},
             {"torch, eager fp32", [&] { plain(pictures); }},
             {"torch, channel-last fp32", [&] { channels(last); }},
             {"torch, frozen fp32", [&] { frozen({pictures}); }}},
            options, rows);
}

void AddDit(const BenchOptions& options, BenchRows& rows) {
  const auto network = DefaultDit();
  const auto policy = mjp::Policy::Create(network, options.policy);
  BenchObservations observations(*network, 1);
  mjp::PolicyOutput output;
  const int steps = policy->options().sampler.steps;
  const at::Tensor x = at::randn({1, kTorchDitHorizon, kTorchDitActions});
  const at::Tensor condition = at::randn({1, kTorchDitCondition});
  const at::Tensor step = at::full({1}, 50, at::kLong);
  const TorchDitPass eager = MakeTorchDit(at::TensorOptions(at::kFloat));
  const TensorFunction frozen =
      Frozen([&](const std::vector<at::Tensor>& in) { return eager(in[0], in[1], in[2]); },
             {x, step, condition});
  const TorchChain chain(steps, x);
  AddInTurn("DiT, features to chunk, " + std::to_string(steps) + " steps",
            {{kOurs, [&] { policy->Infer(observations.NextChunk(), output); }},
             {"torch, eager fp32",
              [&] {
                chain.Run([&](const at::Tensor& at, const at::Tensor& t) {
                  return eager(at, t, condition);
                });
              }},
             {"torch, frozen fp32",
              [&] {
                chain.Run([&](const at::Tensor& at, const at::Tensor& t) {
                  return frozen({at, t, condition});
                });
              }}},
            options, rows);
}

}  // namespace

void AddTorchTransformersCpu(const BenchOptions& options, BenchRows& rows) {
  BenchOptions one = options;
  one.policy.batch = 1;
  if (AsksFor(options, "act")) AddAct(one, rows);
  if (AsksFor(options, "dit")) AddDit(one, rows);
}

}  // namespace mjp::app
