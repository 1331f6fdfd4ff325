#include "tasks/task_names.h"

namespace mjp::app {

std::vector<std::string> TaskNames() { return {kPusht}; }

std::string ScoreMeaning(const std::string& task) {
  return task == kPusht ? "max coverage / 0.95, at most 1" : "the best reward of a control step";
}

}  // namespace mjp::app
