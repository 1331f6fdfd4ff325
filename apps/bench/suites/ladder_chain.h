#ifndef APPS_BENCH_SUITES_LADDER_CHAIN_H_
#define APPS_BENCH_SUITES_LADDER_CHAIN_H_

#include "apps/bench/harness.h"

namespace mjp::app {

// The rungs from a launch per layer to the megakernel, a chain of 16 layers each, as the CPU
// enqueues them; `seconds` of measuring each. A rung that this GPU does not hold says why.
BenchRows BenchChainLadder(double seconds);

}  // namespace mjp::app

#endif  // APPS_BENCH_SUITES_LADDER_CHAIN_H_
