#ifndef BASE_THREADS_H_
#define BASE_THREADS_H_

#include <atomic>
#include <functional>

namespace mjp::app {

// Runs `work` on `threads` threads, the caller's among them, or on as many as the system grants,
// and waits for all. Once one has thrown, `failed` is true for the others, which should then
// return; the first exception is thrown again here.
void RunOnThreads(int threads, const std::function<void(const std::atomic<bool>& failed)>& work);

}  // namespace mjp::app

#endif  // BASE_THREADS_H_
