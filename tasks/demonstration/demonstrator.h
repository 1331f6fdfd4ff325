#ifndef TASKS_DEMONSTRATION_DEMONSTRATOR_H_
#define TASKS_DEMONSTRATION_DEMONSTRATOR_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace mjp::app {

// Who shows a task: says what the policy's numbers should be, control step after control step. One
// object is for one thread. What it does is a function of the seed and of what it is shown.
class Demonstrator {
 public:
  virtual ~Demonstrator() = default;

  // Begins the episode of `seed`. `model` is the task file's without its policy, with what its
  // start draws; `data` is at the start, with positions, velocities and sensors up to date.
  virtual void Begin(uint32_t seed, const mjModel* model, const mjData* data) = 0;
  // Writes the action of the control step that begins from `data` into `action` (numbers of an
  // action), in the policy's units. Throws Error where it cannot go on.
  virtual void Act(const mjModel* model, const mjData* data, std::span<mjtNum> action) = 0;
};

// Makes one. Called on any thread.
using DemonstratorFactory = std::function<std::unique_ptr<Demonstrator>()>;

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_DEMONSTRATOR_H_
