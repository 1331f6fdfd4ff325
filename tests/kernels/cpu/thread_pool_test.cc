#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace {

using mjp::cpu::Block;
using mjp::cpu::ThreadPool;

TEST(ThreadPoolTest, EveryPartRunsOncePerRound) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> counts(threads);
    for (int round = 0; round < 2000; ++round) {
      pool.Run([&](int part) { ++counts[part]; });
      // what the parts wrote is visible here
      ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), threads * (round + 1));
    }
  }
}

TEST(ThreadPoolTest, WakesThreadsThatSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> count = 0;
    pool.Run([&](int) { ++count; });
    EXPECT_EQ(count, 3);
  }
}

TEST(ThreadPoolTest, BlocksCoverTheLayerOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int batch : {1, 2, 7}) {
      for (const int channels : {2, 64, 100, 512}) {
        std::vector<int> counts(batch * channels);
        pool.ForBlocks(batch, channels, 32, [&](const Block& b) {
          EXPECT_EQ(b.channel_begin % 32, 0);
          for (int n = b.batch_begin; n < b.batch_end; ++n) {
            for (int c = b.channel_begin; c < b.channel_end; ++c) ++counts[n * channels + c];
          }
        });
        EXPECT_EQ(counts, std::vector<int>(batch * channels, 1));
      }
    }
  }
}

}  // namespace
