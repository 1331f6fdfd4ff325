#include "apps/tasks/task_option.h"

#include "base/command_line/suggest.h"
#include "tasks/task_names.h"

namespace mjp::app {

std::shared_ptr<std::string> AddTaskOption(CLI::App& command) {
  auto task = std::make_shared<std::string>(kDefaultTask);
  const auto set = [task](const std::string& name) { *task = name; };
  command.add_option_function<std::string>("--task", set, "Which task")
      ->type_name("")
      ->check(OneOf(TaskNames()))
      ->default_str(kDefaultTask);
  return task;
}

}  // namespace mjp::app
