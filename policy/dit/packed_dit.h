#ifndef POLICY_DIT_PACKED_DIT_H_
#define POLICY_DIT_PACKED_DIT_H_

#include <memory>
#include <vector>

#include "policy/cpu/encoder.h"
#include "policy/dit/clip_tower.h"
#include "policy/dit/dit_model.h"
#include "policy/dit/trunk.h"

namespace mjp::cpu {

// All weights of a multi_task_dit or dit_compact checkpoint, packed for this processor.
struct PackedDit {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const PackedEncoder> encoder;  // of dit_compact; else null
  std::vector<PackedVision> vision;              // one, or one per camera
  PackedText text;
  ConvLayer text_projection;
  PackedTrunk trunk;
};

// The one copy of it in this process.
std::shared_ptr<const PackedDit> PackedDitOf(const std::shared_ptr<const Checkpoint>& checkpoint);

}  // namespace mjp::cpu

#endif  // POLICY_DIT_PACKED_DIT_H_
