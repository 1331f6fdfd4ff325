#ifndef TASKS_DEMONSTRATION_DEMONSTRATION_H_
#define TASKS_DEMONSTRATION_DEMONSTRATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/results/episode.h"

namespace mjp::app {

// An episode that somebody has shown: its actions are all that it takes to have it again.
struct Demonstration {
  EpisodeResult result;
  std::vector<std::vector<float>> actions;  // (control steps, numbers of an action)
  std::vector<float> rewards;               // after each
  std::vector<bool> success;                // after each
  std::vector<uint64_t> states;             // a hash of all that moves: the start, then after each
};

// Lets `demonstrator` play the episode of `seed` in `world`, at most `steps` control steps. What is
// executed are the actions as they are recorded, in single precision. Throws Error where an action
// is not finite.
Demonstration Demonstrate(EpisodeWorld& world, Demonstrator& demonstrator, uint32_t seed,
                          int steps);

// Plays the recorded actions again in `world`; `on_step` is called before each control step with
// its index. Throws Error naming the step where a state is not what it was, bit for bit.
void Replay(EpisodeWorld& world, const Demonstration& demonstration,
            const std::function<void(int step)>& on_step);

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_DEMONSTRATION_H_
