#include "plugin/state.h"

#include <algorithm>
#include <cstring>

#include "plugin/register.h"

namespace mjp {
namespace {

// plus the size: marks memory laid out as in state.h; changes with the layout
constexpr mjtNum kLayoutMark = 20261130;

// more would not change anything, and must stay an int
constexpr int kMostCounted = 1 << 20;

// a view of the fields before the arrays, which need no shape
InstanceState Header(const mjModel* model, const mjData* data, int instance) {
  return InstanceState(StateShape(), data->plugin_state + model->plugin_stateadr[instance]);
}

}  // namespace

int StateShape::Size() const {
  return InstanceState::kHeader + history * (observation + pose) + kept * chunk;
}

bool InstanceState::Valid() const { return state_[kLayout] == kLayoutMark + shape_.Size(); }

void InstanceState::Clear(uint64_t seed) {
  std::fill_n(state_, shape_.Size(), mjtNum{0});
  state_[kLayout] = kLayoutMark + shape_.Size();
  state_[kRunning] = 1;
  set_seed(seed);
  set_tick(kNoTick);
}

void InstanceState::Forget() {
  state_[kChunks] = 0;
  state_[kPending] = 0;
  state_[kObserved] = 0;
}

std::vector<mjtNum> InstanceState::AllButTick() const {
  std::vector<mjtNum> numbers(state_, state_ + shape_.Size());
  numbers[kTick] = 0;
  return numbers;
}

void InstanceState::PushObservation(std::span<const mjtNum> observation,
                                    std::span<const mjtNum> pose) {
  const auto push = [this](mjtNum* slots, std::span<const mjtNum> newest) {
    const size_t size = newest.size(), last = size * (shape_.history - 1);
    if (state_[kObserved] == 0) {
      for (int i = 0; i < shape_.history; ++i) std::ranges::copy(newest, slots + i * size);
    } else {
      std::copy(slots + size, slots + size + last, slots);
      std::ranges::copy(newest, slots + last);
    }
  };
  mjtNum* observations = state_ + kHeader;
  push(observations, observation);
  push(observations + shape_.history * shape_.observation, pose);
  state_[kObserved] = 1;
}

void InstanceState::BeginChunk(int64_t tick) {
  mjtNum* chunk = state_ + ChunkOffset();
  const int before = (shape_.kept - 1) * shape_.chunk;
  std::copy_backward(chunk, chunk + before, chunk + before + shape_.chunk);
  std::fill_n(chunk, shape_.chunk, mjtNum{0});
  state_[kChunks] = std::min(chunks_in_a_row(), kMostCounted) + 1;
  state_[kChunkTick] = static_cast<mjtNum>(tick);
  state_[kDecisions] += 1;
  state_[kPending] = 1;
}

void InstanceState::FinishChunk(std::span<const float> actions) {
  std::ranges::copy(actions, state_ + ChunkOffset());
  state_[kPending] = 0;
}

std::span<const mjtNum> InstanceState::observation(int slot) const {
  return {state_ + kHeader + slot * shape_.observation, static_cast<size_t>(shape_.observation)};
}

std::span<const mjtNum> InstanceState::pose(int slot) const {
  const mjtNum* poses = state_ + kHeader + shape_.history * shape_.observation;
  return {poses + slot * shape_.pose, static_cast<size_t>(shape_.pose)};
}

std::span<const mjtNum> InstanceState::chunk(int ago) const {
  return {state_ + ChunkOffset() + ago * shape_.chunk, static_cast<size_t>(shape_.chunk)};
}

std::vector<int> PolicyInstances(const mjModel* model) {
  std::vector<int> instances;
  for (int i = 0; i < model->nplugin; ++i) {
    const mjpPlugin* plugin = mjp_getPluginAtSlot(model->plugin[i]);
    if (plugin && std::strcmp(plugin->name, kPluginName) == 0) instances.push_back(i);
  }
  return instances;
}

void SetEpisodeSeed(const mjModel* model, mjData* data, uint64_t seed) {
  for (const int i : PolicyInstances(model)) Header(model, data, i).set_seed(seed);
}

bool PolicyFailed(const mjModel* model, const mjData* data) {
  const std::vector<int> instances = PolicyInstances(model);
  return std::ranges::any_of(instances, [&](int i) { return Header(model, data, i).failed(); });
}

uint32_t PolicyDecisions(const mjModel* model, const mjData* data) {
  uint32_t decisions = 0;
  for (const int i : PolicyInstances(model)) decisions += Header(model, data, i).decisions();
  return decisions;
}

}  // namespace mjp
