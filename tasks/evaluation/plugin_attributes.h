#ifndef TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_
#define TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_

#include <map>
#include <string>

#include "policy/checkpoint/config.h"
#include "tasks/evaluation/options.h"

namespace mjp::app {

// `text` as the value of an attribute in XML.
std::string XmlText(const std::string& text);

// Those options of a policy that are given, not their defaults, as attributes of the plugin.
std::map<std::string, std::string> GivenAttributes(const mjp::PolicyOptions& options);

// The same of options as a policy resolved them, and what is 0 in them too: nothing that a model
// says of the sampler stands beside these.
std::map<std::string, std::string> ResolvedAttributes(const mjp::PolicyOptions& options);

// The options of an evaluation as attributes of the plugin, whose control step takes `period`
// seconds: checkpoint, latency, actions of a chunk, sampler, backend.
std::map<std::string, std::string> PluginAttributes(const EvaluationOptions& options,
                                                    const mjp::PolicyConfig& config, double period);

}  // namespace mjp::app

#endif  // TASKS_EVALUATION_PLUGIN_ATTRIBUTES_H_
