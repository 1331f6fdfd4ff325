#ifndef KERNELS_CPU_THREAD_POOL_H_
#define KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/cpu/features.h"

namespace mjp::cpu {

// Threads that meet after every layer: the caller is one of them. Parts of a layer are claimed one
// by one, so a worker that the system holds back costs nothing: the others, the caller first, do
// its part. Workers spin for some microseconds between layers, then sleep. Not thread-safe: one
// caller.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(part) once for every part in [0, threads()), on any of the threads, and waits. f must
  // not throw.
  template <class F>
  void Run(F&& f) {
    using Function = std::remove_reference_t<F>;
    RunErased([](void* context, int part) { (*static_cast<Function*>(context))(part); }, &f);
  }

  // Calls f(block) for disjoint blocks that make up all maps and channels of a layer's output,
  // whose channels can be divided at multiples of `granule`.
  template <class F>
  void ForBlocks(int batch, int channels, int granule, F&& f) {
    const Split split = MakeSplit(batch, channels, granule);
    if (split.batch_parts * split.channel_parts == 1) return f(Block{0, batch, 0, channels});
    Run([&](int part) {
      if (part < split.batch_parts * split.channel_parts) {
        f(BlockOf(split, batch, channels, granule, part));
      }
    });
  }

 private:
  struct Split {
    int batch_parts = 1, channel_parts = 1;
  };
  Split MakeSplit(int batch, int channels, int granule) const;
  static Block BlockOf(const Split& split, int batch, int channels, int granule, int part);

  void RunErased(void (*function)(void*, int), void* context);
  void Work();
  void RunClaimedParts();

  std::vector<std::thread> workers_;
  void (*function_)(void*, int) = nullptr;
  void* context_ = nullptr;
  std::atomic<uint32_t> round_{0};     // grows by one per Run; workers sleep on it
  std::atomic<uint64_t> ticket_{~0u};  // round in the upper half, next part to claim in the lower
  std::atomic<uint32_t> finished_{0};  // parts of this round that are done
  std::atomic<bool> stop_{false};
};

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_THREAD_POOL_H_
