#ifndef POLICY_CHECKPOINT_LAYER_NORM_WEIGHTS_H_
#define POLICY_CHECKPOINT_LAYER_NORM_WEIGHTS_H_

#include "policy/checkpoint/network.h"

namespace mjp {

// Of a transformer's norm; without a shape where there is none.
struct LayerNormWeights {
  Tensor weight, bias;  // (width)
};

}  // namespace mjp

#endif  // POLICY_CHECKPOINT_LAYER_NORM_WEIGHTS_H_
