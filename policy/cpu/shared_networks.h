#ifndef POLICY_CPU_SHARED_NETWORKS_H_
#define POLICY_CPU_SHARED_NETWORKS_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "policy/checkpoint/network.h"

namespace mjp::cpu {

// The packed networks of a checkpoint; those in use by some policy are shared. `pack(checkpoint)`
// makes them; their member `checkpoint` keeps it alive.
template <class Networks, class Pack>
std::shared_ptr<const Networks> SharedNetworks(std::shared_ptr<const Checkpoint> checkpoint,
                                               const Pack& pack) {
  static std::mutex mutex;
  static std::map<const Checkpoint*, std::weak_ptr<const Networks>> cache;
  const std::lock_guard lock(mutex);
  std::erase_if(cache, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Networks>& entry = cache[checkpoint.get()];
  if (auto networks = entry.lock()) return networks;
  std::shared_ptr<Networks> networks = pack(*checkpoint);
  networks->checkpoint = std::move(checkpoint);
  entry = networks;
  return networks;
}

}  // namespace mjp::cpu

#endif  // POLICY_CPU_SHARED_NETWORKS_H_
