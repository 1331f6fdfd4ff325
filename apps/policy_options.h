#ifndef APPS_POLICY_OPTIONS_H_
#define APPS_POLICY_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace mjp::app {

// Adds --backend --precision --sampler --steps --parallel --sequential --hold-noise --threads. The
// values have the names of the plugin's attributes. Returns those that a decision can depend on:
// all but --threads.
std::vector<CLI::Option*> AddPolicyOptions(CLI::App& command, mjp::PolicyOptions& options);

// `options` that `command` was given, a --hold-noise of 0 too, as attributes of the plugin.
std::map<std::string, std::string> AttributesGiven(const CLI::App& command,
                                                   const mjp::PolicyOptions& options);

}  // namespace mjp::app

#endif  // APPS_POLICY_OPTIONS_H_
