#include "apps/bench/device.h"

namespace pusht {

BenchRows BenchLadder(const BenchOptions& options) {
  return OnGpu(options, "ladder", BenchLadderCuda);
}

}  // namespace pusht
