#include "apps/bench/device.h"

namespace mjp::app {

BenchRows BenchLadder(const BenchOptions& options) {
  return OnGpu(options, "ladder", BenchLadderCuda);
}

}  // namespace mjp::app
