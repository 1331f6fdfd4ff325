#include "policy/cuda/unet/unet_plans.h"

#include <utility>

#include "policy/cuda/execution_plan.h"
#include "policy/cuda/plan_rows.h"
#include "policy/unet/unet_model.h"

namespace mjp {
Json UnetPlans(const Checkpoint& checkpoint, const std::string& name) {
  const UnetPolicyConfig& config = UnetOf(checkpoint).config;
  const GpuTraits gpu = GpuTraits::Named(name);
  Json plans = Json::array();
  for (const int batch : kPlanBatches) {
    const ExecutionPlan plan = ChooseExecution(
        config, {Format::kFp16, batch, kAutoWindow, config.scheduler.inference_steps}, gpu);
    Json row = PlanRow(gpu, {batch, UnetFormName(plan.form), plan.Text(), plan.why});
    row["window"] = plan.window;
    row["rows"] = plan.rows;
    row["launches"] = plan.Launches();
    plans.push_back(std::move(row));
  }
  return plans;
}

}  // namespace mjp
