#include "apps/bench/device.h"
#include "apps/bench/suites/kernels_cpu.h"

namespace mjp::app {

BenchRows BenchKernels(const BenchOptions& options) {
  BenchRows rows;
  if (OnCpu(options)) rows = Joined(BenchKernelsCpu(options), BenchTransformerCpu(options));
  return Joined(rows, OnGpu(options, "kernels", BenchKernelsCuda));
}

}  // namespace mjp::app
