#ifndef TASKS_MJCF_TASK_FILE_H_
#define TASKS_MJCF_TASK_FILE_H_

#include <memory>
#include <string>

#include "plugin/model/outline.h"
#include "tasks/mjcf/rules.h"
#include "tasks/mjcf/start.h"
#include "tasks/physics/model.h"

namespace mjp::app {

// Throws Error where there is no memory for it.
ModelPtr CopyOfModel(const mjModel* model);

// Compiles a file with its policies left out (plugin/model/outline.h). Throws Error.
ModelPtr CompileWithoutPolicy(const std::string& path);

// The model's one instance of the policy; negative: it has none. Throws Error where it has more.
int FindPolicy(const mjModel* model);

// Whether a model's own elements say a whole task: it has a length, and is attached to no code.
bool SaysWholeTask(const mjModel* model);

// Steps of the engine in a control step of `period` seconds. Throws Error where that is no whole
// number.
int SubstepsOf(const mjModel* model, double period);

// A task as an MJCF file says it (docs/tasks.md), read and checked. Never changes.
class TaskFile {
 public:
  // Compiles the file, without a policy. Throws Error naming what is wrong with it.
  explicit TaskFile(const std::string& path);
  // The same of a model that a host compiled, with its policy; it is copied. Its path() is a text
  // for messages.
  explicit TaskFile(const mjModel* model);

  const std::string& path() const { return path_; }
  // As `model` of <mujoco> has it.
  std::string name() const { return model_->names; }
  // What the text task.code says: the code of this project that the task is attached to, or "".
  std::string code() const;
  // SHA-256 of all that results depend on but checkpoint and options: the compiled model, what the
  // policy sees and drives.
  const std::string& hash() const { return hash_; }
  // The same of the model alone, without its policy.
  const std::string& model_hash() const { return model_hash_; }

  // The model with its policy left out, as it was compiled.
  const mjModel* model() const { return model_.get(); }
  int instance() const { return instance_; }  // of the plugin; negative: none
  // Its policy's attributes. Throws Error where the file has no policy.
  const Outline& policy() const;
  const Start& start() const { return start_; }
  const Rules& rules() const { return *rules_; }
  int substeps() const { return substeps_; }  // steps of the engine in a control step
  double period() const;                      // seconds of a control step

 private:
  TaskFile(std::string path, ModelPtr model);

  std::string path_;
  ModelPtr model_;
  int instance_;
  std::unique_ptr<Outline> policy_;
  Start start_;
  int substeps_ = 0;
  std::unique_ptr<Rules> rules_;
  std::string hash_, model_hash_;
};

}  // namespace mjp::app

#endif  // TASKS_MJCF_TASK_FILE_H_
