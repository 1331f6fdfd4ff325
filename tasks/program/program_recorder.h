#ifndef TASKS_PROGRAM_PROGRAM_RECORDER_H_
#define TASKS_PROGRAM_PROGRAM_RECORDER_H_

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/demonstration/demonstration_writer.h"

namespace mjp::app {

// Records what a program does in a simulation of its own (mjpolicy_record.h).
class ProgramRecorder {
 public:
  // Throws Error as DemonstrationWriter does, and for a file that is judged by code.
  ProgramRecorder(const std::string& task_file, const std::string& dataset,
                  const PictureOptions& pictures);

  // For a host that has the policy in its own loop: `model` is as it compiled it.
  ProgramRecorder(const mjModel* model, const std::string& dataset, const PictureOptions& pictures);

  void Begin(int64_t seed);
  // Before a step of the engine. Returns whether a control step begins. Throws Error for another
  // model, and for controls that are not finite.
  bool Step(const mjModel* model, mjData* data);
  // Instead of Step, after a step of the engine from `before` (kStateWithoutPlugins)
  // with the controls of `data`, which are not changed. Returns whether the task's episode is over.
  // Throws Error as Step does, and where the step does not follow from the recorded actions.
  bool Stepped(const mjModel* model, const mjData* data, const mjtNum* before);
  // Returns whether there was anything to keep. Throws Error where the episode does not come out
  // the same from its actions.
  bool Keep();
  void Discard() { Forget(); }
  void Finish() { writer_.Finish(); }

  int64_t episodes() const { return writer_.episodes(); }
  const mjModel* model() const { return file_->model(); }

 private:
  ProgramRecorder(std::shared_ptr<const TaskFile> file, const RecordOptions& options);

  void CheckStep(const mjModel* model, const mjData* data) const;
  void CheckModel(const mjModel* model) const;
  void CheckLook(const mjModel* model) const;
  void NoteStart(const mjModel* model, std::vector<mjtNum> state);
  bool KeepShown();
  void Forget();

  std::shared_ptr<const TaskFile> file_;
  DemonstrationWriter writer_;
  EpisodeWorld world_;  // in which an episode is played again
  bool begun_ = false;
  int64_t seed_ = 0;
  int substep_ = 0;
  std::shared_ptr<const EpisodeStart> start_;
  std::vector<mjtNum> action_;
  std::vector<std::vector<float>> actions_;
  std::vector<uint64_t> states_;    // before each control step
  std::optional<Showing> showing_;  // what Stepped was told, played again as it comes
  const mjModel* last_model_ = nullptr;
  const mjData* last_data_ = nullptr;
};

}  // namespace mjp::app

#endif  // TASKS_PROGRAM_PROGRAM_RECORDER_H_
