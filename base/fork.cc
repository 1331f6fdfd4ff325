#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace mjp {
namespace {

std::atomic<uint64_t> generation = 0;

}  // namespace

uint64_t ForkGeneration() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  // without memory for the handler nothing else works either
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace mjp
