#ifndef VIEWER_SIMULATION_TASK_EPISODE_H_
#define VIEWER_SIMULATION_TASK_EPISODE_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tasks/evaluation/evaluation.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/mjcf/world.h"

namespace mjp::app {

// The episode of a task file, played by a simulation of that file: begun and judged as an
// evaluation does it.
class TaskEpisode {
 public:
  // What is judged up to a control step.
  struct Verdict {
    EpisodeResult result;
    StateHash hash;     // of every state, as an evaluation writes it
    double reward = 0;  // of the last control step, 0 to 1
    int held = 0;       // control steps in a row with the condition of success
    bool over = false;
  };

  // Null where `model`, compiled from the file at `path`, is no task that its file says whole.
  // Throws Error where the file says it wrongly.
  static std::unique_ptr<TaskEpisode> Open(const std::string& path, const mjModel* model);

  // Begins the episode of `seed`; start() has where that is.
  void Start(uint32_t seed);
  const TaskWorld& start() const { return world_; }
  // Whether a start draws something of the model too.
  bool changes_model() const { return file_->start().changes_model(); }
  // Judges a control step that ended as `data`, or at a `failure` of the simulation.
  void Judge(const mjModel* model, const mjData* data, const std::string& failure);
  // Goes back to what was judged before.
  void Resume(const Verdict& verdict);

  const Verdict& verdict() const { return verdict_; }
  int substeps() const { return file_->substeps(); }

 private:
  explicit TaskEpisode(const std::string& path);

  std::shared_ptr<const TaskFile> file_;
  TaskWorld world_;
  Verdict verdict_;
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_TASK_EPISODE_H_
