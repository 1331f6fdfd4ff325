#ifndef VIEWER_SIMULATION_LATEST_H_
#define VIEWER_SIMULATION_LATEST_H_

#include <memory>
#include <mutex>
#include <utility>

namespace mjp::app {

// The newest immutable value of a writer, for any number of readers. The lock is held for the
// exchange of one pointer only.
template <typename T>
class Latest {
 public:
  void Set(std::shared_ptr<const T> value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_.swap(value);
  }
  // Null before the first Set.
  std::shared_ptr<const T> Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace mjp::app

#endif  // VIEWER_SIMULATION_LATEST_H_
