#ifndef TASKS_EVALUATION_RUN_TEXT_H_
#define TASKS_EVALUATION_RUN_TEXT_H_

#include <string>

#include "policy/policy.h"
#include "tasks/evaluation/task.h"

namespace mjp::app {

// run.json: everything the results depend on, as JSON, one key per line: equal text, equal
// episodes.
std::string RunText(const Task& task, const EvaluationOptions& options, const mjp::Policy& policy,
                    const std::string& version);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_RUN_TEXT_H_
