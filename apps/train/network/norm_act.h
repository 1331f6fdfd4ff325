#ifndef APPS_TRAIN_NETWORK_NORM_ACT_H_
#define APPS_TRAIN_NETWORK_NORM_ACT_H_

#include <ATen/ATen.h>

// Group norm with everything that follows it in one pass over channel-last tensors, forward and
// backward: what is left between the convolutions of a diffusion policy.

namespace mjp::app {

enum class Activation { kNone, kRelu, kMish };

// Where the inputs of one call come from; undefined tensors are left out.
struct NormActInput {
  at::Tensor x;             // (N, C, H, W), channel-last
  at::Tensor weight, bias;  // (C)
  int64_t groups = 1;
  Activation activation = Activation::kNone;
  at::Tensor film;      // (N, 2C): scale, then bias, applied after the activation (Mish only)
  at::Tensor residual;  // (N, C, H, W): added before a ReLU, after a Mish
};

// y = act(GN(x)), with FiLM and residual where given; float32 inside. Differentiable.
// On a GPU one fused kernel each way (C a multiple of 8, at most 2048), else ATen's own operators.
at::Tensor NormAct(const NormActInput& input);

// The same from ATen's operators alone: the reference of the test and the CPU's version.
at::Tensor NormActReference(const NormActInput& input);

// ---- the kernels behind NormAct, norm_act.cu
// -----------------------------------------------------

struct NormActForward {
  at::Tensor y, mean, rstd;  // like x; (N, groups) float32
};
NormActForward NormActForwardCuda(const NormActInput& input);

struct NormActBackward {
  at::Tensor dx, dweight, dbias, dfilm, dresidual;  // undefined where the input was
};
NormActBackward NormActBackwardCuda(const NormActInput& input, const NormActForward& forward,
                                    const at::Tensor& dy);

}  // namespace mjp::app

#endif  // APPS_TRAIN_NETWORK_NORM_ACT_H_
