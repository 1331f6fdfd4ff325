#include "policy/cpu/thread_pool.h"

#include <algorithm>

namespace dp::cpu {
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
  for (int part = 1; part < threads; ++part) workers_.emplace_back([this, part] { Work(part); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunErased(void (*function)(void*, int), void* context) {
  if (!workers_.empty()) {
    function_ = function;
    context_ = context;
    pending_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  function(context, 0);
  if (workers_.empty()) return;
  uint32_t pending = pending_.load(std::memory_order_acquire);
  while (pending != 0) pending = WaitForChange(pending_, pending);
}

void ThreadPool::Work(int part) {
  uint32_t round = 0;
  for (;;) {
    const uint32_t next = WaitForChange(round_, round);
    if (next == round) continue;
    round = next;
    if (stop_) return;
    function_(context_, part);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
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

}  // namespace dp::cpu
