#include "policy/cuda/unet/unet_launches.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "policy/cuda/unet/layer_unet.h"
#include "policy/cuda/unet/row_kernel_unet.h"

namespace mjp {
namespace {

// The pass of a plan, or the one that finishes its windows: a row for each environment, which
// shares with `first` what both can.
std::unique_ptr<NetworkPass> MakePass(const DeviceWeights& weights, Format format, int horizon,
                                      const ExecutionPlan& plan, DeviceArena& arena,
                                      const NetworkPass* first) {
  const int window = std::max(1, plan.window);
  const int rows_per_env = first ? 1 : window, rows = first ? plan.rows / window : plan.rows;
  const FilmConditioning* conditioning = first ? &first->conditioning() : nullptr;
  switch (plan.form) {
    case UnetForm::kLayers:
      return std::make_unique<LayerUnet>(weights.unet(), format, horizon, rows, rows_per_env, arena,
                                         conditioning);
    case UnetForm::kRowKernel:
      return std::make_unique<RowKernelUnet>(weights.norm_conv_unet(), format, horizon,
                                             *plan.row_kernel, rows, rows_per_env, arena,
                                             dynamic_cast<const RowKernelUnet*>(first));
    default:
      throw Unsupported("the megakernel has chains alone, and no single pass");
  }
}

}  // namespace

PassLaunches PlaceUnet(const DeviceWeights& weights, Format format, int horizon,
                       const ExecutionPlan& plan, DeviceArena& arena) {
  PassLaunches unet;
  if (plan.form == UnetForm::kMegakernel) {
    const NormConvUnet& layers = weights.norm_conv_unet();
    unet.megakernel = std::make_unique<MegakernelLaunch>(layers, format, horizon, plan, arena);
    if (plan.fallback_launch)
      unet.megakernel_fallback = unet.megakernel->Fallback(layers, *plan.fallback_launch);
    return unet;
  }
  unet.pass = MakePass(weights, format, horizon, plan, arena, nullptr);
  if (plan.window > 1)
    unet.pass_fallback = MakePass(weights, format, horizon, plan, arena, unet.pass.get());
  return unet;
}

}  // namespace mjp
