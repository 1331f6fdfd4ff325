#include "tasks/demonstration/demonstration.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "tasks/evaluation/evaluation.h"

namespace mjp::app {
namespace {

uint64_t HashOf(const std::vector<mjtNum>& state) {
  StateHash hash;
  for (const mjtNum number : state) hash.Add(number);
  return hash.value();
}

EpisodeResult NewResult(const EpisodeWorld& world, uint32_t seed) {
  EpisodeResult result;
  result.seed = seed;
  for (const std::string& name : world.measures()) result.measures.push_back({name});
  return result;
}

}  // namespace

Demonstration Demonstrate(EpisodeWorld& world, Demonstrator& demonstrator, uint32_t seed,
                          int steps) {
  Demonstration shown;
  shown.result = NewResult(world, seed);
  world.Start(seed);
  demonstrator.Begin(seed, world.model(), world.data());
  std::vector<mjtNum> state = world.State();
  shown.states.push_back(HashOf(state));
  StateHash hash;
  StepOutcome outcome;
  std::vector<mjtNum> numbers(static_cast<size_t>(world.action_size()));
  bool running = true;
  while (running) {
    demonstrator.Act(world.model(), world.data(), numbers);
    std::vector<float> action(numbers.begin(), numbers.end());
    for (const float number : action) {
      if (std::isfinite(number)) continue;
      throw BadInput("the demonstrator of episode " + std::to_string(seed) + " gave " +
                     std::to_string(number) + " as an action in control step " +
                     std::to_string(shown.actions.size()));
    }
    world.Step(action, outcome);
    state = world.State();
    shown.actions.push_back(std::move(action));
    shown.rewards.push_back(static_cast<float>(outcome.reward));
    shown.success.push_back(outcome.success);
    shown.states.push_back(HashOf(state));
    running = AccountStep(outcome, state, steps, shown.result, hash);
  }
  shown.result.hash = hash.value();
  return shown;
}

void Replay(EpisodeWorld& world, const Demonstration& demonstration,
            const std::function<void(int step)>& on_step) {
  const uint32_t seed = demonstration.result.seed;
  world.Start(seed);
  StepOutcome outcome;
  for (size_t step = 0; step <= demonstration.actions.size(); ++step) {
    if (HashOf(world.State()) != demonstration.states[step]) {
      throw BadInput("episode " + std::to_string(seed) +
                     " does not come out the same again from its actions: control step " +
                     std::to_string(step) +
                     " begins elsewhere; nothing of it was recorded. A plugin of the model that "
                     "keeps something outside of mjData does this");
    }
    if (step == demonstration.actions.size()) break;
    on_step(static_cast<int>(step));
    world.Step(demonstration.actions[step], outcome);
  }
}

}  // namespace mjp::app
