#ifndef TASKS_EVALUATION_DISTURBANCES_H_
#define TASKS_EVALUATION_DISTURBANCES_H_

#include <array>
#include <cstdint>
#include <span>

#include "tasks/evaluation/options.h"

// Disturbances of an evaluation. All are functions of the episode's seed and the control step.

namespace mjp::app {

// Whether the pictures differ from the task's.
bool DisturbsPictures(const Conditions& conditions);

// Disturbs a picture (height, width, 3) taken at control step `tick`: shift, brightness, noise.
void DisturbPicture(const Conditions& conditions, uint32_t seed, int tick, int width,
                    std::span<uint8_t> picture);

// Adds the noise of control step `tick` to an action.
void DisturbAction(const Conditions& conditions, uint32_t seed, int tick, std::span<double> action);

// The push in x and y that is due before control step `tick`, of `size` in a direction of its own;
// {0, 0} when none is due. With `count` 0 one is due every twentieth step, else there are `count`
// at random moments of the first kPushedSteps, which add up where they meet.
inline constexpr int kPushedSteps = 150;
std::array<double, 2> PushAt(double size, int count, uint32_t seed, int tick);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_DISTURBANCES_H_
