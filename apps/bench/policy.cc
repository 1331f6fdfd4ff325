#include <array>

#include "apps/bench/harness.h"
#include "kernels/rasterise.h"
#include "policy/checkpoint.h"
#include "policy/random_checkpoint.h"
#include "task/raster_source.h"
#include "task/reset.h"

namespace pusht {
namespace {

// Observations of `count` environments at the benchmark's starts.
struct Observations {
  std::vector<dp::FlatScene> scenes;
  std::vector<float> state, environment;
  std::vector<dp::NoiseKey> keys;

  Observations(const dp::PolicyConfig& config, int count) {
    for (int i = 0; i < count; ++i) {
      const State s = BenchmarkStart(static_cast<uint32_t>(i));
      for (int t = 0; t < config.n_obs_steps; ++t) {
        if (!config.cameras.empty()) scenes.push_back(ToFlatScene(s));
        state.insert(state.end(), config.state_dim, static_cast<float>(s.agent_x));
        environment.insert(environment.end(), config.environment_dim,
                           static_cast<float>(s.block_x));
      }
      keys.push_back({static_cast<uint64_t>(i), 0});
    }
  }

  dp::PolicyInput Input() const {
    dp::PolicyInput input;
    input.count = static_cast<int>(keys.size());
    input.scenes = scenes;
    input.state = state;
    input.environment = environment;
    input.keys = keys;
    return input;
  }
};

}  // namespace

std::vector<BenchRow> BenchPolicy(const BenchOptions& options) {
  const auto checkpoint = options.checkpoint.empty() ? dp::NamedNetwork(options.network)
                                                     : dp::LoadCheckpoint(options.checkpoint);
  const auto policy = dp::Policy::Create(checkpoint, options.policy);
  Observations observations(policy->config(), options.policy.batch);
  dp::PolicyOutput output;
  std::array<std::vector<double>, dp::kStageCount> stages;
  std::vector<double> pass;
  uint32_t decision = 0;
  const auto decide = [&] {
    for (dp::NoiseKey& key : observations.keys) key.decision = decision;
    ++decision;
    policy->Infer(observations.Input(), output);
    for (size_t i = 0; i < dp::kStageCount; ++i) {
      const auto& span = output.times.spans[i];
      if (span.end > span.begin) stages[i].push_back(1e3 * (span.end - span.begin));
    }
    const auto& denoise = output.times[dp::Stage::kDenoise];
    if (output.times.passes > 0) {
      pass.push_back(1e3 * (denoise.end - denoise.begin) / output.times.passes);
    }
  };
  std::vector<BenchRow> rows;
  rows.push_back(
      Measure("policy", "decision", options.seconds, policy->options().batch, "decisions", decide));
  rows.back().note = policy->Description();
  for (size_t i = 0; i < dp::kStageCount; ++i) {
    if (stages[i].empty()) continue;
    rows.push_back(FromTimes("policy", dp::StageName(static_cast<dp::Stage>(i)), stages[i]));
  }
  rows.push_back(FromTimes("policy", "U-Net pass", pass));
  rows.back().note = std::to_string(output.times.passes) + " passes per decision";
  return rows;
}

}  // namespace pusht
