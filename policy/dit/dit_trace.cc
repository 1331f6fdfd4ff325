#include "policy/dit/dit_trace.h"

#include "policy/flow_sampler.h"
#include "policy/scheduler.h"

namespace mjp {

std::vector<double> DitPassTimes(const DitConfig& config, const SamplerOptions& sampler) {
  if (config.objective == DitObjective::kFlowMatching)
    return FlowTimes(sampler.kind, sampler.steps);
  std::vector<double> times;
  for (const DenoiseStep& step : MakeSchedule(config.scheduler, sampler.kind, sampler.steps))
    times.push_back(step.timestep);
  return times;
}

void CompleteDitTrace(const DitConfig& config, const SamplerOptions& sampler, const float* sample,
                      int count, PolicyTrace& trace) {
  const int64_t n = count, horizon = config.horizon, actions = config.action_dim;
  const int64_t elements = n * horizon * actions;
  const auto passes = static_cast<int64_t>(trace.eps_steps.size()) / elements;
  trace.tensors["cond"] = {{n, config.CondDim()}, trace.global_cond};
  trace.tensors["pass_out"] = {{passes, n, horizon, actions}, trace.eps_steps};
  trace.tensors["sample"] = {{n, horizon, actions}, {sample, sample + elements}};
  Tensor& times = trace.tensors["t"];
  times.shape = {passes};
  const std::vector<double> named = DitPassTimes(config, sampler);
  for (size_t i = 0; i < named.size(); ++i) {
    times.data.push_back(static_cast<float>(named[i]));
    if (sampler.kind == SamplerKind::kRk4 && i % 3 == 1) times.data.push_back(times.data.back());
  }
}

}  // namespace mjp
