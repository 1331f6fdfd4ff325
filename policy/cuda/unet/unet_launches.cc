#include "policy/cuda/unet/unet_launches.h"

#include <algorithm>
#include <utility>

#include "policy/cuda/unet/layer_unet.h"
#include "policy/cuda/unet/norm_conv_unet.h"
#include "policy/cuda/unet/row_kernel_unet.h"

namespace mjp {
namespace {

// A pass over `rows`, with the conditioning's part of FiLM shared or its own.
std::unique_ptr<UnetPass> MakePass(const DeviceWeights& weights, Format format, int horizon,
                                   int rows, int rows_per_env, DeviceArena& arena,
                                   const FilmConditioning* conditioning) {
  if (weights.for_norm_conv()) {
    return std::make_unique<NormConvUnetPlan>(weights.norm_conv_unet(), format, horizon, rows,
                                              rows_per_env, arena, conditioning);
  }
  return std::make_unique<LayerUnet>(weights.unet(), format, horizon, rows, rows_per_env, arena,
                                     conditioning);
}

}  // namespace

UnetLaunches PlaceUnet(const DeviceWeights& weights, Format format, int horizon,
                       const ExecutionPlan& plan, DeviceArena& arena) {
  const int window = std::max(1, plan.window);
  UnetLaunches unet;
  if (plan.form == UnetForm::kRowKernel) {
    const NormConvUnet& layers = weights.norm_conv_unet();
    auto pass = std::make_unique<RowKernelUnet>(layers, format, horizon, plan.rows, window,
                                                plan.row_kernel, arena);
    if (window > 1)
      unet.pass_fallback = std::make_unique<RowKernelUnet>(
          layers, format, horizon, plan.rows / window, 1, plan.row_kernel, arena, pass.get());
    unet.pass = std::move(pass);
    return unet;
  }
  if (IsMegakernel(plan.form)) {
    const NormConvUnet& layers = weights.norm_conv_unet();
    unet.megakernel = std::make_unique<MegakernelLaunch>(layers, format, horizon, plan, arena);
    if (window > 1) unet.megakernel_fallback = unet.megakernel->Fallback(layers);
    return unet;
  }
  unet.pass = MakePass(weights, format, horizon, plan.rows, window, arena, nullptr);
  if (window > 1) {
    unet.pass_fallback = MakePass(weights, format, horizon, plan.rows / window, 1, arena,
                                  &unet.pass->conditioning());
  }
  return unet;
}

}  // namespace mjp
