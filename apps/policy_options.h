#ifndef APPS_POLICY_OPTIONS_H_
#define APPS_POLICY_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "policy/policy.h"

namespace pusht {

// Adds --backend --precision --sampler --steps --parallel --sequential --hold-noise --threads. The
// values have the names of the plugin's attributes.
void AddPolicyOptions(CLI::App& command, dp::PolicyOptions& options);

// Which sampler was asked for on the command line; without one the checkpoint decides.
void CompletePolicyOptions(const CLI::App& command, const dp::PolicyConfig& config,
                           dp::PolicyOptions& options);

}  // namespace pusht

#endif  // APPS_POLICY_OPTIONS_H_
