#ifndef POLICY_ACT_FOLDED_BACKBONE_H_
#define POLICY_ACT_FOLDED_BACKBONE_H_

#include "policy/act/act_weights.h"

namespace mjp {

// The shape of ACT's backbone as a picture encoder: the last feature map is the result.
EncoderConfig ActBackbone();

// Its weights with every norm folded into the convolution before it.
EncoderWeights FoldedBackbone(const ResNetWeights& net);

}  // namespace mjp

#endif  // POLICY_ACT_FOLDED_BACKBONE_H_
