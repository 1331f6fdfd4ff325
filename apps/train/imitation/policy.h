#ifndef APPS_TRAIN_IMITATION_POLICY_H_
#define APPS_TRAIN_IMITATION_POLICY_H_

#include "apps/train/data/recorded_frames.h"
#include "apps/train/network/architectures.h"
#include "apps/train/optimisation/parameters.h"

namespace mjp::app {

// What a policy for recorded frames is like, beside its architecture. Pictures may be resized and
// cropped (LeRobot's resize_shape and crop_shape); 0: not.
struct ImitationShape {
  int resize_height = 0, resize_width = 0;  // pixels
  int crop_height = 0, crop_width = 0;      // pixels; at a random place in training
  int observation_steps = 2;                // that a decision sees
  int horizon = 16;                         // actions in a chunk
};

// A policy for `frames`, without weights: their cameras and numbers, normalised by their
// statistics. Throws Error for a shape that its pictures, or the architecture, do not allow.
Architecture ImitationPolicy(const ArchitectureOptions& architecture, const ImitationShape& shape,
                             const RecordedFrames& frames);

// Its initial weights, drawn from `seed`.
NamedTensors InitialImitationWeights(const Architecture& policy, uint64_t seed);

}  // namespace mjp::app

#endif  // APPS_TRAIN_IMITATION_POLICY_H_
