#ifndef TASKS_DEMONSTRATION_DEMONSTRATION_H_
#define TASKS_DEMONSTRATION_DEMONSTRATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tasks/demonstration/demonstrator.h"
#include "tasks/demonstration/episode_world.h"
#include "tasks/results/episode.h"

namespace mjp::app {

// An episode that somebody has shown: its actions are all that it takes to have it again.
struct Demonstration {
  EpisodeResult result;
  std::vector<std::vector<float>> actions;    // (control steps, numbers of an action)
  std::vector<std::vector<mjtNum>> mocap;     // EpisodeWorld::PlaceMocap, before each
  std::vector<float> rewards;                 // after each
  std::vector<bool> success;                  // after each
  std::shared_ptr<const EpisodeStart> start;  // null: that of the seed
  std::vector<uint64_t> states;  // a hash of all that moves: the start, then after each
};

// Of all that moves, for Demonstration::states.
uint64_t HashOfState(const std::vector<mjtNum>& state);

// A demonstration on its way in a world, control step after control step.
class Showing {
 public:
  // An episode has at most `steps` control steps. `world` must outlive this.
  Showing(EpisodeWorld& world, int steps) : world_(world), steps_(steps) {}

  // `start`: where it begins; null: where the seed says.
  void Begin(uint32_t seed, std::shared_ptr<const EpisodeStart> start = nullptr);
  // Begins a control step with an action (numbers of an action), which is executed in single
  // precision, and with mocap bodies where EpisodeWorld::PlaceMocap puts them. Throws Error where a
  // number is not finite. EpisodeWorld::Substep follows, then Finish.
  void Act(std::span<const mjtNum> action, std::span<const mjtNum> mocap = {});
  // Notes what the control step led to. Returns whether the episode goes on.
  bool Finish();
  // Shows the first `steps` control steps again. The rest is forgotten.
  void Rewind(int steps);

  bool running() const { return running_; }
  const Demonstration& shown() const { return shown_; }

 private:
  EpisodeWorld& world_;
  int steps_;
  bool running_ = false;
  Demonstration shown_;
  StateHash hash_;
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
