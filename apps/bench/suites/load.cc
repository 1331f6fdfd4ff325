#include <cstdio>

#include "apps/bench/harness.h"
#include "apps/bench/observations.h"

#ifdef MJPOLICY_HAVE_CUDA
#include "policy/cuda/self_check.h"
#endif

// What passes before the first decision: making the policy, its self-check on a GPU, and the first
// decision beside those that follow.

namespace mjp::app {
namespace {

#ifdef MJPOLICY_HAVE_CUDA
void AddSelfCheck(const BenchOptions& options, const mjp::Policy& policy, BenchRows& rows) {
  constexpr int kChecks = 5;
  if (policy.options().backend != mjp::Backend::kCuda) return;
  std::vector<double> times;
  mjp::SelfCheck check;
  for (int i = 0; i < kChecks; ++i) {
    check = mjp::RunSelfCheck(options.network, policy.options());
    times.push_back(1e3 * check.seconds);
  }
  rows.push_back(FromTimes("load", "self-check", times));
  char note[96];
  std::snprintf(note, sizeof(note), "error %.2g, limit %.2g", check.error, check.limit);
  rows.back().note = note;
}
#endif

}  // namespace

BenchRows BenchLoad(const BenchOptions& options) {
  constexpr int kFollowing = 100;
  BenchRows rows;
  mjp::PolicyOptions unchecked = options.policy;
  unchecked.self_check = false;
  const double begin = mjp::Now();
  const auto policy = mjp::Policy::Create(options.network, unchecked);
  rows.push_back(FromTimes("load", "policy, without self-check", {1e3 * (mjp::Now() - begin)}));
  rows.back().note = policy->Description();
#ifdef MJPOLICY_HAVE_CUDA
  AddSelfCheck(options, *policy, rows);
#endif
  BenchObservations observations(*options.network, policy->options().batch);
  mjp::PolicyOutput output;
  std::vector<double> times;
  for (int i = 0; i <= kFollowing; ++i) {
    const mjp::PolicyInput input = observations.Next();
    const double start = mjp::Now();
    policy->Infer(input, output);
    times.push_back(1e3 * (mjp::Now() - start));
  }
  rows.push_back(FromTimes("load", "first decision", {times.front()}));
  rows.push_back(
      FromTimes("load", "the hundred decisions after it", {times.begin() + 1, times.end()}));
  return rows;
}

}  // namespace mjp::app
