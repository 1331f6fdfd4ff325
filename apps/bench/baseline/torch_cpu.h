#ifndef APPS_BENCH_BASELINE_TORCH_CPU_H_
#define APPS_BENCH_BASELINE_TORCH_CPU_H_

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "apps/bench/harness.h"

// What the rows of libtorch on the CPU are made of.

namespace mjp::app {

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// `function` as a graph for inputs of the shapes of `example`, its weights constants of it, packed
// by oneDNN once.
TensorFunction Frozen(const TensorFunction& function, const std::vector<at::Tensor>& example);

// One way to do a piece of work.
struct Contender {
  std::string name;
  std::function<void()> work;
};

// Appends a row "<contender>: <what>" for each. They are timed in turn, for options.seconds each,
// so that all of them meet the same machine. The first is this project's; the others' notes say how
// many times as long they take, and how much more of the processor: a figure that other work on the
// machine spoils less. Threads that wait in a loop count.
void AddInTurn(const std::string& what, const std::vector<Contender>& contenders,
               const BenchOptions& options, BenchRows& rows);

// Where the suites "act" and "dit" are asked for: chunks of these networks at LeRobot's default
// sizes, of this project's policy and of libtorch, with as many threads as are set.
void AddTorchTransformersCpu(const BenchOptions& options, BenchRows& rows);

}  // namespace mjp::app

#endif  // APPS_BENCH_BASELINE_TORCH_CPU_H_
