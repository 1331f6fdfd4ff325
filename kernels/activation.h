#ifndef KERNELS_ACTIVATION_H_
#define KERNELS_ACTIVATION_H_

namespace dp {

// What follows a normalisation.
enum class Activation { kNone, kRelu, kMish };

}  // namespace dp

#endif  // KERNELS_ACTIVATION_H_
