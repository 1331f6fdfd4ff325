#ifndef TASKS_MJCF_WORLD_H_
#define TASKS_MJCF_WORLD_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>

#include "tasks/mjcf/task_file.h"

namespace mjp::app {

// The world of a task file without its policy: where episodes begin, and where they are judged.
class TaskWorld {
 public:
  // `file` must outlive this. `model`: a copy of its model, which worlds may share whose starts do
  // not change it; null: one of its own.
  explicit TaskWorld(const TaskFile& file, std::shared_ptr<mjModel> model = nullptr);

  // Brings the world to the start of the episode of `seed`.
  void Start(uint32_t seed);
  // Brings positions and the sensors that are judged by up to date.
  void Update();
  // Judges the end of a control step: brings positions and sensors of data() up to date first.
  // Contacts are those that the engine finds at the beginning of its next step.
  void Judge(StepOutcome& outcome);
  // The same, after everything that moves was taken over from `data` of a model of the same file.
  void Judge(const mjModel* model, const mjData* data, StepOutcome& outcome);

  // Takes over everything that moves from `data` of a model of the same file, and brings positions
  // and sensors up to date.
  void Follow(const mjModel* model, const mjData* data);

  // Gives `model` and `data`, of the same file, what this world is at its start.
  void CopyStart(mjModel* model, mjData* data) const;
  // The same in parts: what the start draws of the model, and everything else.
  void CopyLook(mjModel* model) const;
  void CopyState(const mjModel* model, mjData* data) const;

  // Control steps in a row at whose end the condition of success held; to go on from another
  // number.
  int held() const { return held_; }
  void Hold(int steps) { held_ = steps; }

  mjModel* model() { return model_.get(); }
  mjData* data() { return data_.get(); }

 private:
  const TaskFile& file_;
  std::shared_ptr<mjModel> model_;
  DataPtr data_;
  int held_ = 0;  // control steps in a row with the condition of success
  mutable std::vector<mjtNum> state_;
};

// What the world of a task file may have of numbers that tell one control step from another: all
// that moves.
inline constexpr int kMovingState = mjSTATE_PHYSICS | mjSTATE_MOCAP_POS | mjSTATE_MOCAP_QUAT;
std::vector<mjtNum> MovingState(const mjModel* model, const mjData* data);

}  // namespace mjp::app

#endif  // TASKS_MJCF_WORLD_H_
