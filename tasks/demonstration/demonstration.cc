#include "tasks/demonstration/demonstration.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {
namespace {

EpisodeResult NewResult(const EpisodeWorld& world, uint32_t seed) {
  EpisodeResult result;
  result.seed = seed;
  for (const std::string& name : world.measures()) result.measures.push_back({name});
  return result;
}

void StartWorld(EpisodeWorld& world, const Demonstration& demonstration) {
  if (demonstration.start) return world.Start(*demonstration.start);
  world.Start(demonstration.result.seed);
}

}  // namespace

uint64_t HashOfState(const std::vector<mjtNum>& state) {
  StateHash hash;
  for (const mjtNum number : state) hash.Add(number);
  return hash.value();
}

void Showing::Begin(uint32_t seed, std::shared_ptr<const EpisodeStart> start) {
  shown_ = {};
  shown_.result = NewResult(world_, seed);
  shown_.start = std::move(start);
  StartWorld(world_, shown_);
  shown_.states.push_back(HashOfState(world_.State()));
  hash_ = {};
  running_ = true;
}

void Showing::Act(std::span<const mjtNum> numbers, std::span<const mjtNum> mocap) {
  std::vector<float> action(numbers.begin(), numbers.end());
  for (const float number : action) {
    if (std::isfinite(number)) continue;
    throw BadInput("the demonstrator of episode " + std::to_string(shown_.result.seed) + " gave " +
                   std::to_string(number) + " as an action in control step " +
                   std::to_string(shown_.actions.size()));
  }
  for (const mjtNum number : mocap) {
    if (!std::isfinite(number)) throw BadInput("a mocap body was dragged to no finite place");
  }
  world_.PlaceMocap(mocap);
  world_.Act(action);
  shown_.actions.push_back(std::move(action));
  shown_.mocap.emplace_back(mocap.begin(), mocap.end());
}

bool Showing::Finish() {
  StepOutcome outcome;
  world_.Finish(outcome);
  const std::vector<mjtNum> state = world_.State();
  shown_.rewards.push_back(static_cast<float>(outcome.reward));
  shown_.success.push_back(outcome.success);
  shown_.states.push_back(HashOfState(state));
  running_ = AccountStep(outcome, state, steps_, shown_.result, hash_);
  shown_.result.hash = hash_.value();
  return running_;
}

void Showing::Rewind(int steps) {
  std::vector<std::vector<float>> actions = std::move(shown_.actions);
  const std::vector<std::vector<mjtNum>> mocap = std::move(shown_.mocap);
  actions.resize(std::clamp<size_t>(static_cast<size_t>(std::max(0, steps)), 0, actions.size()));
  Begin(shown_.result.seed, shown_.start);
  for (size_t step = 0; step < actions.size(); ++step) {
    Act(std::vector<mjtNum>(actions[step].begin(), actions[step].end()), mocap[step]);
    while (world_.Substep()) {
    }
    Finish();
  }
}

Demonstration Demonstrate(EpisodeWorld& world, Demonstrator& demonstrator, uint32_t seed,
                          int steps) {
  Showing showing(world, steps);
  showing.Begin(seed);
  demonstrator.Begin(seed, world.model(), world.data());
  std::vector<mjtNum> action(static_cast<size_t>(world.action_size()));
  while (showing.running()) {
    demonstrator.Act(world.model(), world.data(), action);
    showing.Act(action);
    while (world.Substep()) {
    }
    showing.Finish();
  }
  return showing.shown();
}

void Replay(EpisodeWorld& world, const Demonstration& demonstration,
            const std::function<void(int step)>& on_step) {
  const uint32_t seed = demonstration.result.seed;
  StartWorld(world, demonstration);
  StepOutcome outcome;
  for (size_t step = 0; step <= demonstration.actions.size(); ++step) {
    if (HashOfState(world.State()) != demonstration.states[step]) {
      throw BadInput("episode " + std::to_string(seed) +
                     " does not come out the same again from its actions: control step " +
                     std::to_string(step) +
                     " begins elsewhere; nothing of it was recorded. A plugin of the model that "
                     "keeps something outside of mjData does this");
    }
    if (step == demonstration.actions.size()) break;
    on_step(static_cast<int>(step));
    if (!demonstration.mocap.empty()) world.PlaceMocap(demonstration.mocap[step]);
    world.Step(demonstration.actions[step], outcome);
  }
}

}  // namespace mjp::app
