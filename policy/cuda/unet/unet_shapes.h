#ifndef POLICY_CUDA_UNET_UNET_SHAPES_H_
#define POLICY_CUDA_UNET_UNET_SHAPES_H_

#include "policy/checkpoint/config.h"
#include "policy/cuda/unet/norm_conv_unet.h"

namespace mjp {

// The U-Net of `config` as LoadNormConvUnet describes it, without a weight: for questions of shape.
// Where there would be weights, pointers are not null and must not be followed.
NormConvUnet UnetShapes(const UnetPolicyConfig& config);

}  // namespace mjp

#endif  // POLICY_CUDA_UNET_UNET_SHAPES_H_
