#ifndef BASE_C_LIBRARY_HANDLES_H_
#define BASE_C_LIBRARY_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork.h"

// What the functions of a C library know their objects by. A caller may hand in anything, from any
// thread; what can be told from a living object of its own is an Error and not a crash.

namespace mjp {

// The objects that live, by the names that callers have of them. Names are numbers, never memory,
// and none is given twice. One for each kind of object, for as long as the process: threads may
// outlive main.
template <typename Name, typename Object>
class Handles {
 public:
  // `unknown` is said of a name that is of no living object.
  explicit Handles(const char* unknown) : unknown_(unknown) {}

  Name* Add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return reinterpret_cast<Name*>(last_);
  }
  // Throws Error for a name that is of no living object, as NULL.
  std::shared_ptr<Object> Find(const Name* name) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(name));
    if (found == objects_.end()) throw Error(ExitCode::kUsage, unknown_);
    return found->second;
  }
  void Remove(const Name* name) {
    const std::lock_guard lock(mutex_);
    objects_.erase(reinterpret_cast<uintptr_t>(name));
  }
  // Remove for an object that was made before fork(): its threads are the parent's, and only they
  // can end it, so it is kept for as long as the process.
  void Retire(const Name* name) {
    const std::lock_guard lock(mutex_);
    auto found = objects_.extract(reinterpret_cast<uintptr_t>(name));
    if (found) retired_.push_back(std::move(found.mapped()));
  }

 private:
  const char* const unknown_;
  ForkMutex mutex_;
  std::map<uintptr_t, std::shared_ptr<Object>> objects_;
  std::vector<std::shared_ptr<Object>> retired_;
  uintptr_t last_ = 0;
};

// The right of the calling thread to an object, for as long as this lives. Throws Error with the
// text `busy` where another thread has it.
class Use {
 public:
  Use(std::atomic_flag& in_use, const char* busy) : in_use_(in_use) {
    if (in_use.test_and_set()) throw Error(ExitCode::kUsage, busy);
  }
  ~Use() { in_use_.clear(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic_flag& in_use_;
};

}  // namespace mjp

#endif  // BASE_C_LIBRARY_HANDLES_H_
