#include "policy/inspect_gpu.h"

#include "base/error.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "base/text_stream.h"
#include "policy/cuda/execution_plan.h"
#endif

namespace mjp {

#ifdef MJPOLICY_HAVE_CUDA

namespace {

constexpr int kBatches[] = {1, 2, 16, 64, 512};

ExecutionPlan PlanFor(const PolicyConfig& config, int batch, const GpuTraits& gpu) {
  return ChooseExecution(
      config, {Format::kFp16, batch, kAutoWindow, config.scheduler.inference_steps}, gpu);
}

}  // namespace

Json ExecutionJson(const PolicyConfig& config, const std::string& name) {
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kBatches) {
    const ExecutionPlan plan = PlanFor(config, batch, gpu);
    plans.push_back({{"gpu", gpu.name},
                     {"format", "fp16"},
                     {"environments", batch},
                     {"form", UnetFormName(plan.form)},
                     {"window", plan.window},
                     {"rows", plan.rows},
                     {"launches", plan.Launches()},
                     {"why", plan.why}});
  }
  return plans;
}

std::string ExecutionTable(const PolicyConfig& config, const std::string& name) {
  if (name.empty()) return "";
  const GpuTraits gpu = GpuTraits::Named(name);
  TextWriter out;
  out << "on " << gpu.name << " (" << CapabilityText(gpu.capability) << ", " << gpu.multiprocessors
      << " SMs, " << gpu.shared_bytes / 1024 << " KiB), fp16, with its own sampler:\n";
  for (const int batch : kBatches) {
    const ExecutionPlan plan = PlanFor(config, batch, gpu);
    out << "  batch " << batch << ": " << plan.Text() << "\n    since " << plan.why << "\n";
  }
  return out.str();
}

#else

namespace {

Error NoPlans() {
  return EnvironmentError(
      "--gpu: this build has no CUDA kernels, and so no plans for GPUs; configure it where nvcc is "
      "found");
}

}  // namespace

Json ExecutionJson(const PolicyConfig&, const std::string&) { throw NoPlans(); }

std::string ExecutionTable(const PolicyConfig&, const std::string& name) {
  if (name.empty()) return "";
  throw NoPlans();
}

#endif

}  // namespace mjp
