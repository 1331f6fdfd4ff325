#include "tasks/pusht/evaluation/judge.h"

#include "tasks/pusht/coverage.h"

namespace mjp::app {

StateNumbers ToNumbers(const State& state) {
  return {state.agent_x, state.agent_y, state.block_x, state.block_y, state.block_angle};
}

State FromNumbers(std::span<const double> numbers) {
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

void JudgeStep(const PushtOptions& options, const State& state, const std::string& failure,
               StepOutcome& outcome) {
  outcome.failure = failure;
  if (!failure.empty()) return;
  const double coverage = Coverage(state);
  outcome.reward = Score(coverage);
  outcome.measures = {coverage};
  outcome.success = coverage > options.success_coverage;
  outcome.enough = coverage > options.end_coverage;
}

}  // namespace mjp::app
