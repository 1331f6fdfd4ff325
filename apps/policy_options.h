#ifndef APPS_POLICY_OPTIONS_H_
#define APPS_POLICY_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <vector>

#include "policy/policy.h"

namespace mjp::app {

// Adds --backend --precision --sampler --steps --parallel --sequential --hold-noise --threads. The
// values have the names of the plugin's attributes. Returns those that a decision can depend on:
// all but --threads.
std::vector<CLI::Option*> AddPolicyOptions(CLI::App& command, mjp::PolicyOptions& options);

}  // namespace mjp::app

#endif  // APPS_POLICY_OPTIONS_H_
