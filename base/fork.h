#ifndef BASE_FORK_H_
#define BASE_FORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

// A child made by fork() has the memory of its parent but none of its threads: a lock that one of
// them held stays locked, work that one did never ends.

namespace mjp {

// A number that grows with every fork() between this code's first call and this process. Whoever
// keeps a thread, or a driver that counts on some, keeps this number beside it: where it has
// changed, they are of another process and must be neither waited for nor destroyed.
uint64_t ForkGeneration();

// The object that `holder` has for this process. A child gets its own, which `succeed` (Object& ->
// unique_ptr<Object>) makes of its parent's; that one stays as it is. Object::generation is the
// ForkGeneration of its making.
template <typename Object, typename Succeed>
Object& OfThisProcess(std::atomic<Object*>& holder, Succeed succeed) {
  Object* object = holder;
  while (object->generation != ForkGeneration()) {
    std::unique_ptr<Object> next = succeed(*object);
    if (holder.compare_exchange_strong(object, next.get())) return *next.release();
  }
  return *object;
}

// A lock that no child finds taken, because fork() waits for it. For sections that are short, and
// for objects that live as long as the process.
class ForkMutex {
 public:
  ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace mjp

#endif  // BASE_FORK_H_
