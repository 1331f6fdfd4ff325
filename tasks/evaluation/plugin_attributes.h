#ifndef TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_
#define TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_

#include <map>
#include <string>

#include "policy/checkpoint/config.h"
#include "tasks/evaluation/options.h"

namespace mjp::app {

// The options of an evaluation as attributes of the plugin, whose control step takes `period`
// seconds: checkpoint, latency, actions of a chunk, sampler, backend.
std::map<std::string, std::string> PluginAttributes(const EvaluationOptions& options,
                                                    const mjp::PolicyConfig& config, double period);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_
