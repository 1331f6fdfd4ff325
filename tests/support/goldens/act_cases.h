#ifndef TESTS_SUPPORT_GOLDENS_ACT_CASES_H_
#define TESTS_SUPPORT_GOLDENS_ACT_CASES_H_

#include <memory>
#include <string>

#include "policy/act/act_model.h"
#include "policy/checkpoint/network.h"

namespace mjp_test {

// A small ACT policy: two cameras of 40x72, state 3, environment 2, action 3, chunk 6, width 24.
mjp::ActPolicyConfig SmallActConfig();

// `config` with formula weights and statistics of its own for each feature.
std::shared_ptr<const mjp::Checkpoint> ActCheckpoint(const mjp::ActPolicyConfig& config);

// The policy of a stored case, the file case_<name>.json at `path`: its configuration and
// statistics, or those of the case that it names, with formula weights.
std::shared_ptr<const mjp::Checkpoint> StoredActCheckpoint(const std::string& path);

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_GOLDENS_ACT_CASES_H_
