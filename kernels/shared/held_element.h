#ifndef KERNELS_SHARED_HELD_ELEMENT_H_
#define KERNELS_SHARED_HELD_ELEMENT_H_

#include "kernels/shared/denoise.h"

namespace mjp {

// An element of x that is known to end as `clean`, as the forward process makes it of the chain's
// own start: at a step with sqrt_a and sqrt_1ma of the step, or in the end with 1 and 0.
// Before each pass it takes the place of x, as in inpainting by diffusion (Lugmayr et al. 2022;
// of action chunks: Black et al. 2025).
MJP_HOST_DEVICE inline float HeldElement(float sqrt_a, float sqrt_1ma, float clean, float start) {
  return RoundedAdd(RoundedMul(sqrt_a, clean), RoundedMul(sqrt_1ma, start));
}

}  // namespace mjp

#endif  // KERNELS_SHARED_HELD_ELEMENT_H_
