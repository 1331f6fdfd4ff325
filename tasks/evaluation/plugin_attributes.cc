#include "tasks/evaluation/plugin_attributes.h"

#include "base/text_stream.h"
#include "policy/option_names.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {

std::map<std::string, std::string> PluginAttributes(const EvaluationOptions& options,
                                                    const mjp::PolicyConfig& config,
                                                    double period) {
  std::map<std::string, std::string> attributes;
  const auto set = [&attributes](const char* key, const auto&... values) {
    mjp::TextWriter text;
    text.precision(9);
    (text << ... << values);
    attributes[key] = text.str();
  };
  const mjp::PolicyOptions& policy = options.policy;
  set("checkpoint", options.checkpoint);
  set("latency", options.conditions.latency * period * 1e3);
  set("action_steps", ResolveActionSteps(options, config));
  if (policy.sampler.kind != mjp::SamplerKind::kAuto) {  // else it has none
    set("sampler", mjp::SamplerName(policy.sampler.kind));
    set("steps", policy.sampler.steps);
    set("hold_noise", policy.sampler.hold_noise);
  }
  if (policy.sampler.parallel_window != mjp::kAutoWindow) {
    set("parallel", policy.sampler.parallel_window, ",", policy.sampler.parallel_tolerance);
  }
  if (!policy.instruction.empty()) set("instruction", policy.instruction);
  set("backend", mjp::BackendName(policy.backend));
  set("precision", mjp::PrecisionName(policy.precision));
  return attributes;
}

}  // namespace mjp::app
