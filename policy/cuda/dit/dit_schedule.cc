#include "policy/cuda/dit/dit_schedule.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "policy/cuda/dit/dit_engine.h"
#include "policy/cuda/execution_plan.h"
#include "policy/cuda/plan_rows.h"
#include "policy/dit/dit_trace.h"
#include "policy/flow_sampler.h"
#include "policy/sampler.h"
#include "policy/scheduler.h"

namespace mjp {
namespace {

void CheckDit(const Checkpoint& checkpoint) {
  CheckRgb(checkpoint);
  const ClipTower& vision = DitOf(checkpoint).config.clip.vision;
  if (vision.mlp % 8 == 0) return;
  throw Unsupported(
      "vision encoder with " + std::to_string(vision.mlp) +
      " between its layers: the GPU kernels take multiples of 8; use the CPU backend");
}

// Windows of steps only where they are asked for: their errors are not measured for this network.
void ResolveDit(const Checkpoint&, PolicyOptions& options) {
  int& window = options.sampler.parallel_window;
  if (window == kAutoWindow) window = 0;
  float& tolerance = options.sampler.parallel_tolerance;
  if (tolerance == 0) tolerance = DefaultTolerance(options.precision);
}

std::unique_ptr<CudaEngine> MakeDit(std::shared_ptr<const Checkpoint> checkpoint,
                                    const PolicyOptions& options) {
  return std::make_unique<DitEngine>(std::move(checkpoint), options);
}

double DitLimit(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return 6e-5;
    case Precision::kBf16:
      return 1e-1;
    default:
      return 2e-2;
  }
}

}  // namespace

const CudaNetwork kDitOnCuda = {CheckDit, ResolveDit, MakeDit, DitLimit};

std::vector<DenoiseStep> DitSchedule(const DitConfig& config, const SamplerOptions& sampler) {
  if (config.objective == DitObjective::kDiffusion)
    return MakeSchedule(config.scheduler, sampler.kind, sampler.steps);
  const std::vector<DenoiseStep> euler = FlowSteps(sampler.steps);
  if (sampler.kind == SamplerKind::kEuler) return euler;
  std::vector<DenoiseStep> steps;
  for (DenoiseStep step : euler) {
    const int first = 3 * step.timestep;
    for (const int time : {0, 1, 1, 2}) {
      step.timestep = first + time;
      steps.push_back(step);
    }
  }
  return steps;
}

std::vector<float> DitTimeTerms(const DitConfig& config, const cpu::PackedTrunk& packed,
                                const SamplerOptions& sampler, cpu::ThreadPool& pool) {
  const std::vector<double> times = DitPassTimes(config, sampler);
  const cpu::Trunk trunk(packed, config, times, 1, 1, pool);
  const bool diffusion = config.objective == DitObjective::kDiffusion;
  const size_t terms = size_t{6} * config.hidden, width = terms * config.layers;
  std::vector<float> table(width * (diffusion ? config.scheduler.train_steps : times.size()));
  for (size_t t = 0; t < times.size(); ++t) {
    float* row = table.data() + width * (diffusion ? static_cast<size_t>(times[t]) : t);
    for (int i = 0; i < config.layers; ++i)
      std::copy_n(trunk.time_terms(i) + t * terms, terms, row + i * terms);
  }
  return table;
}

Json DitPlans(const Checkpoint& checkpoint, const std::string& name) {
  CheckDit(checkpoint);
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kPlanBatches) {
    const DitExecutionPlan plan =
        ChooseDitExecution(DitOf(checkpoint).config, {Format::kFp16, batch}, gpu);
    plans.push_back(PlanRow(gpu, {batch, plan.FormName(), plan.Text(), plan.why}));
  }
  return plans;
}

}  // namespace mjp
