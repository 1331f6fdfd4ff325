#ifndef TASKS_EVALUATION_DISTURBANCES_H_
#define TASKS_EVALUATION_DISTURBANCES_H_

#include <cstdint>
#include <span>

#include "tasks/evaluation/evaluation.h"
#include "tasks/pusht/physics/batch_physics.h"

// Disturbances of an evaluation. All are functions of the episode's seed and the control step.

namespace mjp::app {

// Whether the pictures differ from the benchmark's.
bool DisturbsPictures(const Conditions& conditions);

// Disturbs a picture (96, 96, 3) taken at control step `tick`: shift, brightness, pixel noise.
void DisturbPicture(const Conditions& conditions, uint32_t seed, int tick,
                    std::span<uint8_t> picture);

// Adds the noise of control step `tick` to a target.
Target DisturbTarget(const Conditions& conditions, uint32_t seed, int tick, Target target);

// The push due before control step `tick`, pixels; {0, 0} when none is due.
Target PushAt(const Conditions& conditions, uint32_t seed, int tick);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_DISTURBANCES_H_
