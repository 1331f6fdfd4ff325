#ifndef APPS_TASKS_TASK_OPTION_H_
#define APPS_TASKS_TASK_OPTION_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace mjp::app {

// Adds --task, one of the tasks that are code of this project, and returns where its value will be:
// the default one without.
std::shared_ptr<std::string> AddTaskOption(CLI::App& command);

}  // namespace mjp::app

#endif  // APPS_TASKS_TASK_OPTION_H_
