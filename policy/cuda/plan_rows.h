#ifndef POLICY_CUDA_PLAN_ROWS_H_
#define POLICY_CUDA_PLAN_ROWS_H_

#include <string>

#include "base/json_forward.h"
#include "kernels/cuda/primitives/gpu_traits.h"

// What `mjpolicy inspect --gpu` says, for some numbers of environments.

namespace mjp {

inline constexpr int kPlanBatches[] = {1, 2, 16, 64, 512};

struct PlanOfBatch {
  int environments;
  std::string form, text, why;
};

// A row of NetworkType::plans, in fp16.
Json PlanRow(const GpuTraits& gpu, const PlanOfBatch& plan);

}  // namespace mjp

#endif  // POLICY_CUDA_PLAN_ROWS_H_
