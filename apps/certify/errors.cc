#include <algorithm>
#include <cmath>

#include "apps/bench/observations.h"
#include "apps/certify/measures.h"
#include "kernels/reference/unet_pass.h"
#include "policy/unet/unet_model.h"
#include "tasks/pusht/pictures/flat_scene_drawer.h"
#include "tasks/results/statistics.h"

namespace mjp::app {
namespace {

constexpr int kRobots = 8;

// The network's output for robot n at `step`, minus that of the pass in double precision from the
// same x and conditioning.
void AddDifferences(const mjp::UnetModel& model, const mjp::PolicyTrace& trace, size_t step, int n,
                    std::vector<double>& differences) {
  const mjp::UnetPolicyConfig& config = model.config;
  const int horizon = config.horizon, dim = config.action_dim, row = horizon * dim;
  const int width = config.CondDim();
  const float* x = &trace.x_steps[((step - 1) * kRobots + n) * row];
  const float* output = &trace.eps_steps[(step * kRobots + n) * row];
  mjp::reference::Signal signal = {dim, horizon, {}};
  for (int c = 0; c < dim; ++c)
    for (int t = 0; t < horizon; ++t) signal.values.push_back(x[t * dim + c]);
  const auto cond = trace.global_cond.begin() + n * width;
  const mjp::reference::Signal expected = mjp::reference::UnetPass(
      model.unet, signal, trace.timesteps[step], std::vector<double>(cond, cond + width));
  for (int c = 0; c < dim; ++c)
    for (int t = 0; t < horizon; ++t)
      differences.push_back(std::abs(output[t * dim + c] - expected.values[c * horizon + t]));
}

}  // namespace

Json ErrorsOf(const SharedCheckpoint& checkpoint, const mjp::PolicyOptions& options) {
  const mjp::UnetModel* model = mjp::FindUnet(*checkpoint);
  if (model == nullptr)
    return {{"absent",
             "only U-Nets have a pass in double precision here; docs/NUMERICS.md has "
             "the limits that tests hold this network to"}};
  mjp::PolicyOptions sequential = options;
  sequential.batch = kRobots;
  sequential.scene_drawer = &mjp::FlatSceneDrawer();
  sequential.sampler.parallel_window = 0;
  mjp::PolicyTrace trace;
  mjp::PolicyOutput output;
  output.trace = &trace;
  BenchObservations observations(*checkpoint, kRobots);
  mjp::Policy::Create(checkpoint, sequential)->Infer(observations.Next(), output);
  const size_t steps = trace.timesteps.size();
  if (steps < 2) return {{"absent", "a chain of one step leaves no x to begin from"}};
  std::vector<double> differences;
  for (int n = 0; n < kRobots; ++n)
    for (const size_t step : {size_t{1}, steps / 2, steps - 1})
      AddDifferences(*model, trace, step, n, differences);
  return {{"of", "the U-Net's output, each value of 24 passes"},
          {"p50", Quantile(differences, 0.5)},
          {"p99", Quantile(differences, 0.99)},
          {"max", Quantile(differences, 1)}};
}

}  // namespace mjp::app
