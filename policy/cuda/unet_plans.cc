#include "policy/cuda/unet_plans.h"

#include "base/text_stream.h"
#include "policy/cuda/execution_plan.h"
#include "policy/unet/unet_model.h"

namespace mjp {
namespace {

constexpr int kBatches[] = {1, 2, 16, 64, 512};

std::string TraitsText(const GpuTraits& gpu) {
  TextWriter out;
  out << CapabilityText(gpu.capability) << ", " << gpu.multiprocessors << " SMs, "
      << gpu.shared_bytes / 1024 << " KiB";
  return out.str();
}

}  // namespace

Json UnetPlans(const Checkpoint& checkpoint, const std::string& name) {
  const UnetPolicyConfig& config = UnetOf(checkpoint).config;
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kBatches) {
    const ExecutionPlan plan = ChooseExecution(
        config, {Format::kFp16, batch, kAutoWindow, config.scheduler.inference_steps}, gpu);
    plans.push_back({{"gpu", gpu.name},
                     {"traits", TraitsText(gpu)},
                     {"format", "fp16"},
                     {"environments", batch},
                     {"form", UnetFormName(plan.form)},
                     {"window", plan.window},
                     {"rows", plan.rows},
                     {"launches", plan.Launches()},
                     {"text", plan.Text()},
                     {"why", plan.why}});
  }
  return plans;
}

}  // namespace mjp
