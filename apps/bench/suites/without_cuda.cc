#include "apps/bench/device.h"

// Never called: OnGpu says first that there is no GPU.

namespace mjp::app {

BenchRows BenchKernelsCuda(const BenchOptions&) { return {}; }
BenchRows BenchLadderCuda(const BenchOptions&) { return {}; }
BenchRows BenchPassCuda(const BenchOptions&) { return {}; }
BenchRows BenchRasteriserCuda(const BenchOptions&) { return {}; }

}  // namespace mjp::app
