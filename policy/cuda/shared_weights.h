#ifndef POLICY_CUDA_SHARED_WEIGHTS_H_
#define POLICY_CUDA_SHARED_WEIGHTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/cuda/primitives/gpu_probe.h"
#include "policy/checkpoint/network.h"

namespace mjp {

// A checkpoint's weights on the current device, made of `options` where no policy uses them yet.
// They hold the checkpoint.
template <class Weights, class... Options>
std::shared_ptr<const Weights> SharedWeights(std::shared_ptr<const Checkpoint> checkpoint,
                                             Options... options) {
  using Key = std::tuple<const Checkpoint*, int, Options...>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Weights>> cache;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Weights>& entry = cache[{checkpoint.get(), CurrentDevice(), options...}];
  // a live entry holds its checkpoint, so the address cannot be another's
  std::shared_ptr<const Weights> weights = entry.lock();
  if (!weights) entry = weights = std::make_shared<Weights>(std::move(checkpoint), options...);
  return weights;
}

}  // namespace mjp

#endif  // POLICY_CUDA_SHARED_WEIGHTS_H_
