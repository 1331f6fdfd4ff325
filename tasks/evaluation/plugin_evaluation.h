#ifndef TASKS_EVALUATION_PLUGIN_EVALUATION_H_
#define TASKS_EVALUATION_PLUGIN_EVALUATION_H_

#include <memory>

#include "tasks/evaluation/evaluation.h"

namespace mjp::app {

// The same episodes as the batch, with the policy in the engine plugin and one plain mj_step loop
// per thread. The plugin makes its own policies: `policy` is described and let go. Throws Error for
// options the plugin does not have (disturbances) or refuses.
std::unique_ptr<Evaluation> MakePluginEvaluation(const Task& task, const EvaluationOptions& options,
                                                 std::unique_ptr<mjp::Policy> policy);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_PLUGIN_EVALUATION_H_
