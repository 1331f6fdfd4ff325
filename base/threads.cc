#include "base/threads.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace mjp::app {

void RunOnThreads(int threads, const std::function<void(const std::atomic<bool>& failed)>& work) {
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work(failed);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  others.reserve(threads);
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
  } catch (const std::exception&) {
    // the threads that there are do the work
  }
  guarded();
  others.clear();  // waits
  if (failure) std::rethrow_exception(failure);
}

void ForEachOnThreads(int threads, size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  RunOnThreads(static_cast<int>(std::min<size_t>(threads, count)),
               [&](const std::atomic<bool>& failed) {
                 for (size_t i = next++; i < count && !failed; i = next++) work(i);
               });
}

}  // namespace mjp::app
