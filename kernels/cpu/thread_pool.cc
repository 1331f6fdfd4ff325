#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <exception>

namespace mjp::cpu {
namespace {

// Waits until `value` differs from `old`: spinning first, as the next layer is microseconds away.
uint32_t WaitForChange(const std::atomic<uint32_t>& value, uint32_t old) {
  constexpr int kSpins = 4000;
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(threads);
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  } catch (const std::exception&) {
    // results do not depend on the threads: those that there are do the work
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunErased(void (*function)(void*, int), void* context) {
  if (workers_.empty()) return function(context, 0);
  function_ = function;
  context_ = context;
  finished_.store(0, std::memory_order_relaxed);
  const uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  ticket_.store(uint64_t{round} << 32, std::memory_order_release);
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  RunClaimedParts();
  const auto parts = static_cast<uint32_t>(threads());
  uint32_t finished = finished_.load(std::memory_order_acquire);
  while (finished != parts) finished = WaitForChange(finished_, finished);
}

// A part that was claimed keeps its round open, so function and context are those of the round.
void ThreadPool::RunClaimedParts() {
  const auto parts = static_cast<uint32_t>(threads());
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket) < parts) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    function_(context_, static_cast<int>(static_cast<uint32_t>(ticket)));
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) finished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::Work() {
  uint32_t round = 0;
  for (;;) {
    round = WaitForChange(round_, round);
    if (stop_) return;
    RunClaimedParts();
  }
}

ThreadPool::Split ThreadPool::MakeSplit(int batch, int channels, int granule) const {
  Split split;
  const int granules = (channels + granule - 1) / granule;
  split.channel_parts = std::min(granules, threads());
  split.batch_parts = std::min(batch, threads() / split.channel_parts);
  return split;
}

Block ThreadPool::BlockOf(const Split& split, int batch, int channels, int granule, int part) {
  const int granules = (channels + granule - 1) / granule;
  const int b = part / split.channel_parts, c = part % split.channel_parts;
  const auto border = [](int count, int parts, int i) {
    return static_cast<int>(int64_t{count} * i / parts);
  };
  return {border(batch, split.batch_parts, b), border(batch, split.batch_parts, b + 1),
          border(granules, split.channel_parts, c) * granule,
          std::min(border(granules, split.channel_parts, c + 1) * granule, channels)};
}

}  // namespace mjp::cpu
