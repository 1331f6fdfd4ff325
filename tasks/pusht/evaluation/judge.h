#ifndef TASKS_PUSHT_EVALUATION_JUDGE_H_
#define TASKS_PUSHT_EVALUATION_JUDGE_H_

#include <array>
#include <string>

#include "tasks/evaluation/task.h"
#include "tasks/pusht/options.h"
#include "tasks/pusht/physics/state.h"

namespace mjp::app {

// A state of Push-T as an evaluation keeps it: agent x, y, block x, y, angle.
using StateNumbers = std::array<double, 5>;
StateNumbers ToNumbers(const State& state);
State FromNumbers(std::span<const double> numbers);

// Judges a control step that led to `state`; `failure` is why it is not to be trusted, or "".
void JudgeStep(const PushtOptions& options, const State& state, const std::string& failure,
               StepOutcome& outcome);

}  // namespace mjp::app

#endif  // TASKS_PUSHT_EVALUATION_JUDGE_H_
