#include "plugin/instances.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork.h"

namespace mjp {
namespace {

// Where a policy is. Slots live as long as the process and are used again, so that a number that is
// wrong can be looked up without harm.
struct Slot {
  std::atomic<const mjData*> data = nullptr;  // whose policy it is; null: nobody's
  std::atomic<int> instance = 0;
  std::atomic<const mjtNum*> state = nullptr;
  std::atomic<PolicyInstance*> policy = nullptr;
};

class Slots {
 public:
  // Number n, from 1 on; null for one that never was.
  Slot* At(uintptr_t number) const {
    if (number == 0 || number > kChunks * kChunk) return nullptr;
    Slot* chunk = chunks_[(number - 1) / kChunk].load(std::memory_order_acquire);
    return chunk ? chunk + (number - 1) % kChunk : nullptr;
  }
  uintptr_t Take() {
    if (!free_.empty()) {
      const uintptr_t number = free_.back();
      free_.pop_back();
      return number;
    }
    if (taken_ == kChunks * kChunk) throw EnvironmentError("too many simulations have a policy");
    if (taken_ % kChunk == 0) {
      chunks_[taken_ / kChunk].store(new Slot[kChunk], std::memory_order_release);
    }
    return ++taken_;
  }
  void GiveBack(uintptr_t number) { free_.push_back(number); }

 private:
  static constexpr size_t kChunk = 1024, kChunks = 4096;
  std::array<std::atomic<Slot*>, kChunks> chunks_ = {};
  size_t taken_ = 0;
  std::vector<uintptr_t> free_;
};

struct Instances {
  ForkMutex mutex;
  Slots slots;
  std::map<std::pair<const mjData*, int>, uintptr_t> of_data;
  std::map<const mjtNum*, uintptr_t> of_state;
};

// never destroyed: a host may step while the process ends
Instances& TheInstances() {
  static Instances& instances = *new Instances;
  return instances;
}

// Takes the policy out of the table, whose mutex is held.
std::unique_ptr<PolicyInstance> Remove(Instances& table, const mjData* data, int instance) {
  const auto found = table.of_data.find({data, instance});
  if (found == table.of_data.end()) return nullptr;
  Slot& slot = *table.slots.At(found->second);
  slot.data = nullptr;
  table.of_state.erase(slot.state);
  table.slots.GiveBack(found->second);
  table.of_data.erase(found);
  return std::unique_ptr<PolicyInstance>(slot.policy.exchange(nullptr));
}

}  // namespace

void KeepInstance(mjData* data, int instance, const mjtNum* state,
                  std::unique_ptr<PolicyInstance> policy) {
  Instances& table = TheInstances();
  std::unique_ptr<PolicyInstance> before;  // outlives the lock
  const std::lock_guard lock(table.mutex);
  before = Remove(table, data, instance);
  const uintptr_t number = table.slots.Take();
  table.of_data[{data, instance}] = number;
  table.of_state[state] = number;
  Slot& slot = *table.slots.At(number);
  slot.instance = instance;
  slot.state = state;
  slot.policy = policy.release();
  slot.data = data;
  data->plugin_data[instance] = number;
}

PolicyInstance* FindInstance(const mjData* data, int instance) {
  Instances& table = TheInstances();
  const Slot* slot = table.slots.At(data->plugin_data[instance]);
  if (slot && slot->data == data && slot->instance == instance) return slot->policy;
  const std::lock_guard lock(table.mutex);
  const auto found = table.of_data.find({data, instance});
  data->plugin_data[instance] = found == table.of_data.end() ? 0 : found->second;
  return found == table.of_data.end() ? nullptr : table.slots.At(found->second)->policy.load();
}

PolicyInstance* FindInstanceOfState(const void* number, const mjtNum* state) {
  Instances& table = TheInstances();
  const Slot* slot = table.slots.At(reinterpret_cast<uintptr_t>(number));
  if (slot && slot->state == state && slot->data) return slot->policy;
  const std::lock_guard lock(table.mutex);
  const auto found = table.of_state.find(state);
  return found == table.of_state.end() ? nullptr : table.slots.At(found->second)->policy.load();
}

void DropInstance(mjData* data, int instance) {
  Instances& table = TheInstances();
  std::unique_ptr<PolicyInstance> policy;  // outlives the lock
  {
    const std::lock_guard lock(table.mutex);
    policy = Remove(table, data, instance);
  }
  data->plugin_data[instance] = 0;
}

}  // namespace mjp
