#ifndef TASKS_EVALUATION_RUN_TEXT_H_
#define TASKS_EVALUATION_RUN_TEXT_H_

#include <string>

#include "policy/policy.h"
#include "tasks/evaluation/task.h"

namespace mjp::app {

// What the policy's pictures are otherwise than in its training, as a sentence; "" where they are
// as there, or that is not known. Throws Error where the task cannot draw them.
std::string UnlikeTraining(const Task& task, const mjp::Policy& policy);

// run.json: everything the results depend on, as JSON, one key per line: equal text, equal
// episodes.
std::string RunText(const Task& task, const EvaluationOptions& options, const mjp::Policy& policy,
                    const std::string& version);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_RUN_TEXT_H_
