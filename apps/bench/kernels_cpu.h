#ifndef APPS_BENCH_KERNELS_CPU_H_
#define APPS_BENCH_KERNELS_CPU_H_

#include "apps/bench/harness.h"

namespace pusht {

// Every operator of the CPU backend on one thread, in shapes of the notebook's networks with
// --batch rows (two pictures each).
BenchRows BenchKernelsCpu(const BenchOptions& options);

}  // namespace pusht

#endif  // APPS_BENCH_KERNELS_CPU_H_
