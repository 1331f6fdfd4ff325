#include "apps/bench/baseline/torch_cpu.h"

#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/frozen_graph_optimizations.h>
#include <torch/csrc/jit/passes/frozen_ops_to_mkldnn.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace mjp::app {

TensorFunction Frozen(const TensorFunction& function, const std::vector<at::Tensor>& example) {
  using torch::jit::Stack;
  const auto traced = [&](const Stack& stack) {
    std::vector<at::Tensor> inputs;
    for (const c10::IValue& value : stack) inputs.push_back(value.toTensor());
    return Stack{function(inputs)};
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  std::shared_ptr<torch::jit::Graph> graph =
      torch::jit::tracer::trace(Stack(example.begin(), example.end()), traced, no_name)
          .first->graph;
  torch::jit::OptimizeFrozenGraph(graph);
  torch::jit::ConvertFrozenOpsToMKLDNN(graph);
  const auto executor = std::make_shared<torch::jit::GraphExecutor>(graph, "frozen");
  return [executor](const std::vector<at::Tensor>& inputs) {
    Stack stack(inputs.begin(), inputs.end());
    executor->run(stack);
    return stack.front().toTensor();
  };
}

namespace {

// Before each measurement: OpenMP's threads spin on after their work, at the cost of the next one.
constexpr std::chrono::milliseconds kRest{100};

// Seconds that the processor has spent in this process, on all threads.
double ProcessorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void AddInTurn(const std::string& what, const std::vector<Contender>& contenders,
               const BenchOptions& options, BenchRows& rows) {
  std::vector<std::vector<double>> times(contenders.size()), processor(contenders.size());
  for (const Contender& contender : contenders) contender.work();
  RepeatFor(static_cast<double>(contenders.size()) * options.seconds, [&] {
    for (size_t i = 0; i < contenders.size(); ++i) {
      std::this_thread::sleep_for(kRest);
      const double begin = mjp::Now(), processor_begin = ProcessorTime();
      contenders[i].work();
      processor[i].push_back(1e3 * (ProcessorTime() - processor_begin));
      times[i].push_back(1e3 * (mjp::Now() - begin));
    }
  });
  double ours = 0, our_processor = 0;
  for (size_t i = 0; i < contenders.size(); ++i) {
    BenchRow row = FromTimes("baseline", contenders[i].name + ": " + what, times[i]);
    const double spent = FromTimes("", "", processor[i]).median;
    char text[128];
    if (i == 0) {
      ours = row.median, our_processor = spent;
      std::snprintf(text, sizeof(text), "in turn with the next %zu, %.0f ms of processor time",
                    contenders.size() - 1, spent);
    } else {
      std::snprintf(text, sizeof(text), "takes %.2f times as long, %.2f times the processor time",
                    row.median / ours, spent / our_processor);
    }
    row.note = text;
    rows.push_back(row);
  }
}

}  // namespace mjp::app
