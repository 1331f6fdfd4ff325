#ifndef POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_

#include <optional>
#include <vector>

#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// One launch of the megakernel: how it splits a U-Net, and what it needs of a GPU. A function of
// sizes alone, which takes no memory. Weights, and where activations and mailboxes are, are
// MegakernelLayers'.
struct MegakernelPlan {
  struct Step {
    megakernel::Layer layer;   // without addresses
    int source[2] = {-1, -1};  // the steps whose outputs it reads; -1: none
    bool has_output = true;    // false: the last one, which the head reads
  };
  megakernel::Target target;
  int rows = 1, rows_per_env = 1;
  std::vector<Step> steps;
  int row_batches = 1;
  uint32_t mailbox_values = 0;                       // float32, of all mailboxes
  bool warp_specialized = false;                     // MMA warps and epilogue warps share its work
  megakernel::SharedSpace shared = {};               // of a CTA
  std::optional<megakernel::PortablePlan> portable;  // of the portable form
  bool supported = true;                             // the kernel runs it on `target`

  std::vector<megakernel::Layer> Layers() const;
};
// Of a launch over `rows` rows, `rows_per_env` of each environment.
MegakernelPlan PlanMegakernel(const NormConvUnet& unet, Format format, int horizon, int rows,
                              int rows_per_env, const megakernel::Target& target);

// The sizes among a launch's arguments: what its shared memory depends on besides the layers.
megakernel::CommonArgs MegakernelSizes(const NormConvUnet& unet, int horizon, int rows,
                                       int rows_per_env);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_
