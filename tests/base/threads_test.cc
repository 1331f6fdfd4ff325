#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

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

TEST(ForEachOnThreads, EachIndexIsGivenOnce) {
  for (const size_t count : {0, 1, 100}) {
    std::vector<std::atomic<int>> calls(count);
    ForEachOnThreads(3, count, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& of_one : calls) EXPECT_EQ(of_one, 1);
  }
}

TEST(ForEachOnThreads, NoneIsBegunAfterAFailure) {
  size_t last = 0;
  const auto work = [&](size_t i) {
    last = i;
    if (i == 4) throw std::runtime_error("fifth");
  };
  EXPECT_THROW(ForEachOnThreads(1, 100, work), std::runtime_error);
  EXPECT_EQ(last, 4u);
}

}  // namespace
}  // namespace mjp::app
