#include "policy/cuda/plan_rows.h"

#include "base/json.h"
#include "base/text_stream.h"

namespace mjp {

Json PlanRow(const GpuTraits& gpu, const PlanOfBatch& plan) {
  TextWriter traits;
  traits << CapabilityText(gpu.capability) << ", " << gpu.multiprocessors << " SMs, "
         << gpu.shared_bytes / 1024 << " KiB";
  return {{"gpu", gpu.name},   {"traits", traits.str()},
          {"format", "fp16"},  {"environments", plan.environments},
          {"form", plan.form}, {"text", plan.text},
          {"why", plan.why}};
}

}  // namespace mjp
