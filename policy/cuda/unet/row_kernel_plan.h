#ifndef POLICY_CUDA_UNET_ROW_KERNEL_PLAN_H_
#define POLICY_CUDA_UNET_ROW_KERNEL_PLAN_H_

#include <optional>

#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/row_kernel/plan.h"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// How the row kernel runs a U-Net: a function of sizes alone, the same for any number of rows.
// Weights and their memory are RowKernelUnet's.
struct RowKernelPlan {
  row_kernel::Config config;
  row_kernel::Plan plan;
  row_kernel::Buffer x;  // where it stands
};
// The plan on a GPU; none where the row kernel does not run the network so.
std::optional<RowKernelPlan> PlanRowKernel(const NormConvUnet& unet, Format format, int horizon,
                                           const row_kernel::Config& config, const GpuTraits& gpu);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_ROW_KERNEL_PLAN_H_
