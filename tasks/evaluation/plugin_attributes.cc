#include "tasks/evaluation/plugin_attributes.h"

#include "base/text_stream.h"
#include "policy/option_names.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {

namespace {

template <class... Values>
std::string TextOf(const Values&... values) {
  mjp::TextWriter text;
  text.precision(9);
  (text << ... << values);
  return text.str();
}

}  // namespace

std::string XmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::map<std::string, std::string> GivenAttributes(const mjp::PolicyOptions& options) {
  std::map<std::string, std::string> attributes;
  const mjp::SamplerOptions& sampler = options.sampler;
  if (sampler.kind != mjp::SamplerKind::kAuto) {
    attributes["sampler"] = mjp::SamplerName(sampler.kind);
  }
  if (sampler.steps > 0) attributes["steps"] = TextOf(sampler.steps);
  if (sampler.temperature) attributes["temperature"] = TextOf(*sampler.temperature);
  if (sampler.hold_noise > 0) attributes["hold_noise"] = TextOf(sampler.hold_noise);
  if (sampler.prefix) attributes["prefix"] = "1";
  if (sampler.warm_start > 0) attributes["warm_start"] = TextOf(sampler.warm_start);
  if (sampler.parallel_window != mjp::kAutoWindow) {
    attributes["parallel"] = TextOf(sampler.parallel_window, ",", sampler.parallel_tolerance);
  }
  if (!options.self_check) attributes["self_check"] = "0";
  if (!options.instruction.empty()) attributes["instruction"] = options.instruction;
  if (options.backend != mjp::Backend::kAuto) {
    attributes["backend"] = mjp::BackendName(options.backend);
  }
  if (options.precision != mjp::Precision::kAuto) {
    attributes["precision"] = mjp::PrecisionName(options.precision);
  }
  return attributes;
}

std::map<std::string, std::string> ResolvedAttributes(const mjp::PolicyOptions& options) {
  std::map<std::string, std::string> attributes = GivenAttributes(options);
  attributes["hold_noise"] = TextOf(options.sampler.hold_noise);
  attributes["prefix"] = TextOf(options.sampler.prefix);
  attributes["warm_start"] = TextOf(options.sampler.warm_start);
  return attributes;
}

std::map<std::string, std::string> PluginAttributes(const EvaluationOptions& options,
                                                    const mjp::PolicyConfig& config,
                                                    double period) {
  std::map<std::string, std::string> attributes = ResolvedAttributes(options.policy);
  attributes["checkpoint"] = options.checkpoint;
  attributes["latency"] = TextOf(options.conditions.Latency() * period * 1e3);
  attributes["action_steps"] = TextOf(ResolveActionSteps(options, config));
  // also where it is 0: a task file's own would stand else
  attributes["replan_beyond"] = TextOf(RuleOf(options, config).beyond);
  if (options.replan_after > 0) attributes["replan_after"] = TextOf(options.replan_after);
  // a policy without a sampler refuses those of one
  if (options.policy.sampler.kind == mjp::SamplerKind::kAuto) {
    for (const char* name : {"steps", "temperature"}) attributes.erase(name);
  }
  return attributes;
}

}  // namespace mjp::app
