#include "base/fork.h"

#include <pthread.h>

#include <vector>

namespace mjp {
namespace {

std::atomic<uint64_t> generation = 0;

struct ForkMutexes {
  std::mutex mutex;
  std::vector<ForkMutex*> all;
};

// never destroyed: a process may fork while it ends
ForkMutexes& TheMutexes() {
  static ForkMutexes& mutexes = *new ForkMutexes;
  return mutexes;
}

void LockAll() {
  TheMutexes().mutex.lock();
  for (ForkMutex* each : TheMutexes().all) each->lock();
}

void UnlockAll() {
  for (ForkMutex* each : TheMutexes().all) each->unlock();
  TheMutexes().mutex.unlock();
}

void UnlockAllInChild() {
  generation.fetch_add(1, std::memory_order_relaxed);
  UnlockAll();
}

// Without memory for the handlers nothing else works either.
void Watch() {
  [[maybe_unused]] static const int watching = pthread_atfork(LockAll, UnlockAll, UnlockAllInChild);
}

}  // namespace

uint64_t ForkGeneration() {
  Watch();
  return generation.load(std::memory_order_relaxed);
}

ForkMutex::ForkMutex() {
  Watch();
  const std::lock_guard lock(TheMutexes().mutex);
  TheMutexes().all.push_back(this);
}

}  // namespace mjp
