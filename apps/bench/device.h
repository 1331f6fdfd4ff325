#ifndef APPS_BENCH_DEVICE_H_
#define APPS_BENCH_DEVICE_H_

#include "apps/bench/harness.h"

// What the figures are measured on.

namespace mjp::app {

struct Machine {
  std::string processor;  // its name
  unsigned cores = 0;
  std::string gpu, driver;  // the GPU's name, the driver's version; empty: no usable GPU
};
Machine DescribeMachine();

// Whether --backend lets a suite run its part on the CPU.
bool OnCpu(const BenchOptions& options);

// The rows of `part`, the part of `suite` on the GPU: none where --backend is cpu, one that says
// why where there is no usable GPU.
BenchRows OnGpu(const BenchOptions& options, const std::string& suite, const Suite& part);

// `rows` and then `more`.
BenchRows Joined(BenchRows rows, const BenchRows& more);

// The suites' parts on the GPU; only OnGpu calls them. A build without CUDA has empty ones.
BenchRows BenchKernelsCuda(const BenchOptions& options);
BenchRows BenchLadderCuda(const BenchOptions& options);
BenchRows BenchPassCuda(const BenchOptions& options);
BenchRows BenchRasteriserCuda(const BenchOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_DEVICE_H_
