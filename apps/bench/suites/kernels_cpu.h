#ifndef APPS_BENCH_SUITES_KERNELS_CPU_H_
#define APPS_BENCH_SUITES_KERNELS_CPU_H_

#include "apps/bench/harness.h"

namespace mjp::app {

// Every operator of the CPU backend on one thread, in shapes of the notebook's networks with
// --batch rows (two pictures each).
BenchRows BenchKernelsCpu(const BenchOptions& options);

// The operators of transformers likewise, in shapes of LeRobot's multi_task_dit and act.
BenchRows BenchTransformerCpu(const BenchOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_SUITES_KERNELS_CPU_H_
