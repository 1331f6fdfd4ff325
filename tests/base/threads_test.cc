#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace mjp::app {
namespace {

TEST(RunOnThreads, RunsOnAllAndWaits) {
  for (const int threads : {0, 1, 3}) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    RunOnThreads(threads, [&](const std::atomic<bool>& failed) {
      const std::lock_guard<std::mutex> lock(mutex);
      seen.insert(std::this_thread::get_id());
      EXPECT_FALSE(failed);
    });
    EXPECT_EQ(seen.size(), threads == 0 ? 1u : threads);
    EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
  }
}

TEST(RunOnThreads, AFailureStopsTheOthersAndIsThrownAgain) {
  std::atomic<int> begun = 0;
  const auto work = [&](const std::atomic<bool>& failed) {
    if (begun++ == 1) throw std::runtime_error("second");
    while (!failed) std::this_thread::yield();
  };
  try {
    RunOnThreads(3, work);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "second");
  }
}

}  // namespace
}  // namespace mjp::app
