#include "plugin/policies/decision_cache.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "policy/pictures/gpu_picture.h"

namespace mjp {
namespace {

template <typename T>
bool SameBits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <typename T>
std::vector<T> Copy(std::span<const T> span) {
  return {span.begin(), span.end()};
}

}  // namespace

Decision::Decision(const PolicyInput& input)
    : frames_(Copy(input.frames)),
      scenes_(Copy(input.scenes)),
      gpu_pictures_(Copy(input.gpu_pictures)),
      state_(Copy(input.state)),
      environment_(Copy(input.environment)),
      prefix_(Copy(input.prefix)),
      x_start_(Copy(input.x_start)),
      prefix_steps_(Copy(input.prefix_steps)),
      result_(promise_.get_future().share()) {
  if (input.count != 1 || input.keys.size() != 1) {
    throw BadInput("a decision is of one environment, with one noise key");
  }
  key_ = input.keys[0];
}

PolicyInput Decision::input() const {
  PolicyInput input;
  input.count = 1;
  input.frames = frames_;
  input.scenes = scenes_;
  input.gpu_pictures = gpu_pictures_;
  input.state = state_;
  input.environment = environment_;
  input.prefix = prefix_;
  input.prefix_steps = prefix_steps_;
  input.x_start = x_start_;
  input.keys = {&key_, 1};
  return input;
}

bool Decision::Answers(const PolicyInput& input) const {
  const NoiseKey& key = input.keys[0];
  return key.seed == key_.seed && key.decision == key_.decision &&
         SameBits(input.state, std::span<const float>(state_)) &&
         SameBits(input.environment, std::span<const float>(environment_)) &&
         SameBits(input.prefix, std::span<const float>(prefix_)) &&
         SameBits(input.x_start, std::span<const float>(x_start_)) &&
         SameBits(input.prefix_steps, std::span<const int>(prefix_steps_)) &&
         SameBits(input.scenes, std::span<const std::byte>(scenes_)) &&
         std::ranges::equal(input.gpu_pictures, gpu_pictures_,
                            [](const auto& a, const auto& b) { return SamePicture(*a, *b); }) &&
         SameBits(input.frames, std::span<const uint8_t>(frames_));
}

std::pair<std::shared_ptr<Decision>, bool> DecisionCache::FindOrAdd(const PolicyInput& input) {
  if (capacity_ == 0) return {std::make_shared<Decision>(input), true};
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Decision>& each : decisions_) {
    if (each->Answers(input)) return {each, false};
  }
  if (decisions_.size() == capacity_) decisions_.pop_front();
  decisions_.push_back(std::make_shared<Decision>(input));
  return {decisions_.back(), true};
}

void DecisionCache::Forget(const Decision* decision) {
  std::lock_guard lock(mutex_);
  std::erase_if(decisions_, [decision](const auto& each) { return each.get() == decision; });
}

}  // namespace mjp
