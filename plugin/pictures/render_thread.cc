#include "plugin/pictures/render_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/fork.h"
#include "policy/timing.h"

namespace mjp {
namespace {

// How long the caller looks for the end of its job before it sleeps: waking up takes as long as a
// tenth of a picture by a GPU.
constexpr double kLooking = 400e-6;  // seconds

// A driver of OpenGL cleans up when a process ends, and a child that fork() made would so destroy
// what its parent draws with: NVIDIA's ends the parent, or lets it wait for ever. So such a child
// ends after what was registered in it, without what was registered before.
void EndWithoutTheDriver(int status, void*) {
  std::fflush(nullptr);
  _exit(status);
}
void PrepareChild() { on_exit(EndWithoutTheDriver, nullptr); }

struct Task {
  const std::function<void()>* job;
  std::exception_ptr failure;
  std::atomic<bool> done = false;
};

class Worker {
 public:
  Worker() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_atfork(nullptr, nullptr, PrepareChild);
    std::thread([this] { Loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  bool here() const { return generation_ == ForkGeneration(); }

  void Run(const std::function<void()>& job) {
    Task task = {&job, nullptr};
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(&task);
    }
    posted_.notify_one();
    const double end = Now() + kLooking;
    while (!task.done && Now() < end) std::this_thread::yield();
    if (!task.done) {
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [&] { return task.done.load(); });
    }
    if (task.failure) std::rethrow_exception(task.failure);
  }

 private:
  [[noreturn]] void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      posted_.wait(lock, [&] { return !queue_.empty(); });
      Task* task = queue_.front();
      queue_.pop_front();
      lock.unlock();
      try {
        (*task->job)();
      } catch (...) {
        task->failure = std::current_exception();
      }
      lock.lock();
      task->done = true;
      finished_.notify_all();
    }
  }

  const uint64_t generation_ = ForkGeneration();
  std::mutex mutex_;
  std::condition_variable posted_, finished_;
  std::deque<Task*> queue_;
};

// never destroyed: at exit the thread may still be waiting
Worker& TheWorker() {
  static Worker& worker = *new Worker;
  return worker;
}

}  // namespace

void RunOnRenderThread(const std::function<void()>& job) {
  Worker& worker = TheWorker();
  if (!worker.here()) {
    throw EnvironmentError(
        "MuJoCo's renderer cannot be used after fork(), for its thread and OpenGL stay with the "
        "parent: start processes by spawn, or load the model in them alone");
  }
  worker.Run(job);
}

bool HasRenderThread() { return TheWorker().here(); }

}  // namespace mjp
