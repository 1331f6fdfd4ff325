#ifndef KERNELS_SHARED_TOKEN_ACTIVATION_H_
#define KERNELS_SHARED_TOKEN_ACTIVATION_H_

namespace mjp {

// What stands between the linear layers of a transformer. The three GELUs are different functions:
//   kGeluErf    x (1 + erf(x / sqrt 2)) / 2
//   kGeluTanh   x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
//   kQuickGelu  x sigmoid(1.702 x), CLIP's
//   kSilu       x sigmoid(x)
enum class TokenActivation { kNone, kRelu, kGeluErf, kGeluTanh, kQuickGelu, kSilu };

}  // namespace mjp

#endif  // KERNELS_SHARED_TOKEN_ACTIVATION_H_
