// Decisions where memory runs out.

#include "plugin/policies/shared_policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

#include "base/error.h"
#include "plugin/policies/cache.h"
#include "tests/support/fake_policy.h"
#include "tests/support/temp_dir.h"

namespace {
// Allocations of this thread until the one that fails; negative: none does.
thread_local int allocations_left = -1;
}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace mjp_test {
namespace {

TEST(SharedPolicyTest, ADecisionThatFindsNoMemoryKeepsNobodyWaiting) {
  const TempDir folder;
  FakePolicyLog log;
  log.remembered = 8;
  log.Install();
  const auto policy = mjp::GetSharedPolicy(folder.path(), {}, {}, 0);
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    ASSERT_LT(failures, 1000);
    const std::vector<float> state = {1, static_cast<float>(failures)};
    const mjp::NoiseKey key;
    mjp::PolicyInput input;
    input.count = 1;
    input.state = state;
    input.keys = {&key, 1};
    mjp::UnderWay under_way;
    allocations_left = failures;
    try {
      under_way = policy->Prefetch(input);
    } catch (const std::bad_alloc&) {
    }
    failed = allocations_left < 0;
    allocations_left = -1;
    const auto decision = std::make_shared<mjp::Decision>(input);
    std::promise<void> made;
    std::future<void> end = made.get_future();
    std::thread([policy, decision, made = std::move(made)]() mutable {
      mjp::PolicyOutput output;
      try {
        policy->Infer(decision->input(), output);
      } catch (const std::bad_alloc&) {
      }
      made.set_value();
    }).detach();
    ASSERT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready)
        << "allocation " << failures;
  }
  EXPECT_GT(failures, 5);
  mjp::SetPolicyMakers({});
}

}  // namespace
}  // namespace mjp_test
