#include "apps/bench/device.h"
#include "apps/bench/kernels_cpu.h"

namespace pusht {

BenchRows BenchKernels(const BenchOptions& options) {
  BenchRows rows;
  if (OnCpu(options)) rows = BenchKernelsCpu(options);
  return Joined(rows, OnGpu(options, "kernels", BenchKernelsCuda));
}

}  // namespace pusht
