#ifndef BASE_THREADS_H_
#define BASE_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>

namespace mjp::app {

// Runs `work` on `threads` threads, the caller's among them, or on as many as the system grants,
// and waits for all. Once one has thrown, `failed` is true for the others, which should then
// return; the first exception is thrown again here.
void RunOnThreads(int threads, const std::function<void(const std::atomic<bool>& failed)>& work);

// Calls `work` with each of 0 ... count - 1, as RunOnThreads does; once one has thrown, no further.
void ForEachOnThreads(int threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace mjp::app

#endif  // BASE_THREADS_H_
