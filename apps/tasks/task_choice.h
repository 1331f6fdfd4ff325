#ifndef APPS_TASKS_TASK_CHOICE_H_
#define APPS_TASKS_TASK_CHOICE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tasks/evaluation/options.h"
#include "tasks/evaluation/task.h"
#include "tasks/mjcf/task_file.h"
#include "tasks/pusht/options.h"

namespace mjp::app {

// The task that a command evaluates: a task file, or one that is code of this project, with the
// options that such a task has of its own.
class TaskChoice {
 public:
  // Adds MODEL, --task, --through, --latency and the options of Push-T.
  void AddTo(CLI::App& command, EvaluationOptions& options);

  // Makes the task and gives `options` what a task file says and they do not. Throws Error where
  // the file is none, or an option is not of its task.
  std::unique_ptr<Task> Make(EvaluationOptions& options) const;

 private:
  void RefusePushtOptions() const;
  bool Given(const char* option) const;
  bool WantsBatch(const Conditions& conditions) const;

  std::string file_, task_, latency_;
  PushtOptions pusht_;
  std::vector<const CLI::Option*> pusht_options_;
  const CLI::Option* through_ = nullptr;
  const CLI::App* command_ = nullptr;
};

// The task of a file; gives `options` what the file's policy says and they do not. `pusht` is for a
// file whose code is Push-T. Throws Error where the code is none of this project, or not of the
// file's model.
std::unique_ptr<Task> TaskOfFile(std::shared_ptr<const TaskFile> file, EvaluationOptions& options,
                                 const PushtOptions& pusht = {});

}  // namespace mjp::app

#endif  // APPS_TASKS_TASK_CHOICE_H_
