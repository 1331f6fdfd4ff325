#include "apps/bench/baseline/torch_timer.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

namespace mjp::app {
namespace {

BenchRow Time(const BenchRow& what, double seconds, const c10::cuda::CUDAStream& stream,
              const std::function<void()>& work) {
  constexpr int kWarmUp = 3;  // cuDNN tries its algorithms in the first
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> times;
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  RepeatFor(seconds, [&] {
    begin.record(stream);
    work();
    end.record(stream);
    end.synchronize();
    times.push_back(begin.elapsed_time(end));
  });
  BenchRow row = FromTimes(what.suite, what.name, times);
  row.device = "GPU";
  row.items = what.items, row.unit = what.unit;
  return row;
}

}  // namespace

void AddTorchWork(const TorchFormat& format, const std::string& name, double items,
                  const std::string& unit, double seconds, const std::function<void()>& work,
                  BenchRows& rows) {
  const auto stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  BenchRow row;
  row.suite = "baseline";
  row.items = items, row.unit = unit;
  row.name = std::string("torch, eager ") + format.name + ": " + name;
  rows.push_back(Time(row, seconds, stream, work));
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  work();
  graph.capture_end();
  row.name = std::string("torch, graph ") + format.name + ": " + name;
  rows.push_back(Time(row, seconds, stream, [&] { graph.replay(); }));
}

}  // namespace mjp::app
