#ifndef POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_
#define POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_

#include <vector>

#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// How the megakernel splits a U-Net: a function of shapes alone, which takes no memory. Where
// activations, mailboxes and reordered weights are is MegakernelLayers'.
struct MegakernelPlan {
  struct Step {
    megakernel::Layer layer;   // without the addresses of sources and output
    int source[2] = {-1, -1};  // the steps whose outputs it reads; -1: none
    bool has_output = true;    // false: the last one, which the head reads
  };
  std::vector<Step> steps;
  int row_batches = 1;
  uint32_t mailbox_values = 0;    // float32, of all mailboxes
  bool warp_specialized = false;  // runs with MMA warps and epilogue warps
  bool supported = true;          // the kernel runs every layer

  std::vector<megakernel::Layer> Layers() const;
};
MegakernelPlan PlanMegakernel(const NormConvUnet& unet, int horizon, int rows,
                              bool warp_specialized);
// Whether its layers can run with MMA warps and epilogue warps.
bool CanSpecializeWarps(const NormConvUnet& unet, int horizon);

// What one launch needs of a GPU.
struct LaunchNeeds {
  bool supported = false;    // the kernel runs every layer, the head and the sampler
  bool as_measured = false;  // the portable form: in those paths that were run on a GPU
  int ctas = 0;              // all resident at once
  size_t shared_bytes = 0;   // of a CTA; 0 where a layer is not supported
};
// Of a launch over `rows` rows, `rows_per_env` of each environment, on `target`.
LaunchNeeds MegakernelNeeds(const NormConvUnet& unet, Format format, int horizon, int rows,
                            int rows_per_env, bool warp_specialized,
                            const megakernel::Target& target);

// The sizes among a launch's arguments: what its shared memory depends on besides the layers.
megakernel::CommonArgs MegakernelSizes(const NormConvUnet& unet, int horizon, int rows,
                                       int rows_per_env);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_MEGAKERNEL_PLAN_H_
