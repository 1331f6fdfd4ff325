#ifndef TASK_THREADS_H_
#define TASK_THREADS_H_

#include <atomic>
#include <functional>

namespace pusht {

// Runs `work` on `threads` threads, the caller's among them, or on as many as the system grants,
// and waits for all. Once one has thrown, `failed` is true for the others, which should then
// return; the first exception is thrown again here.
void RunOnThreads(int threads, const std::function<void(const std::atomic<bool>& failed)>& work);

}  // namespace pusht

#endif  // TASK_THREADS_H_
