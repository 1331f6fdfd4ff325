#ifndef KERNELS_SHARED_ACTIVATION_H_
#define KERNELS_SHARED_ACTIVATION_H_

namespace mjp {

// What follows a normalisation.
enum class Activation { kNone, kRelu, kMish };

}  // namespace mjp

#endif  // KERNELS_SHARED_ACTIVATION_H_
