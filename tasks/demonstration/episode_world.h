#ifndef TASKS_DEMONSTRATION_EPISODE_WORLD_H_
#define TASKS_DEMONSTRATION_EPISODE_WORLD_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tasks/demonstration/task_code.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"

namespace mjp::app {

// Where an episode begins that no seed says.
struct EpisodeStart {
  std::vector<mjtNum> state;  // mjSTATE_INTEGRATION without plugins
  ModelPtr look;              // a copy of the file's model with what a start may draw
};

// One simulation of a task file that is driven by actions from outside, step by step as the plugin
// would drive it: starts, physics and judgement are those of an evaluation.
class EpisodeWorld {
 public:
  // `code`: null where the file itself says how it starts and is judged. Throws Error where the
  // file has no policy.
  EpisodeWorld(std::shared_ptr<const TaskFile> file, std::unique_ptr<TaskCode> code);

  void Start(uint32_t seed);
  // Throws Error where code says how the file starts and is judged.
  void Start(const EpisodeStart& start);
  // One control step with `action` (numbers of an action, the policy's units), judged.
  void Step(std::span<const float> action, StepOutcome& outcome);
  // Puts the mocap bodies somewhere: all positions, then all quaternions (7 x nmocap); empty: they
  // stay.
  void PlaceMocap(std::span<const mjtNum> poses);
  std::vector<mjtNum> MocapPoses() const;
  // The same in parts, for somebody who looks between the steps of the engine.
  void Act(std::span<const float> action);
  bool Substep();  // false: the control step is over
  void Finish(StepOutcome& outcome);

  // Where the simulation is, with positions, velocities and sensors up to date. Not to be changed.
  const mjModel* model() { return view_.model(); }
  mjData* data() { return view_.data(); }
  // The simulation itself, also within a control step. Not to be changed.
  const mjData* moving() const { return data_.get(); }
  // All that moves.
  std::vector<mjtNum> State() const { return MovingState(model_.get(), data_.get()); }
  std::vector<std::string> measures() const;
  int action_size() const { return static_cast<int>(numbers_.size()); }  // numbers of an action

 private:
  std::shared_ptr<const TaskFile> file_;
  std::unique_ptr<TaskCode> code_;
  TaskWorld view_;
  ModelPtr model_;
  DataPtr data_;
  std::vector<mjtNum> numbers_;  // of an action
  int substep_ = 0;              // steps of the engine in this control step
  std::string failure_;          // of the physics, in this control step
};

}  // namespace mjp::app

#endif  // TASKS_DEMONSTRATION_EPISODE_WORLD_H_
