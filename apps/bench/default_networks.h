#ifndef APPS_BENCH_DEFAULT_NETWORKS_H_
#define APPS_BENCH_DEFAULT_NETWORKS_H_

#include <memory>

#include "policy/policy.h"

namespace mjp::app {

// LeRobot's networks at its default sizes, with random weights, the same in every call: ACT with
// one camera of 480x640 and 14 actions, the diffusion transformer with one of 96x96 and 2.
std::shared_ptr<const mjp::Checkpoint> DefaultAct();
std::shared_ptr<const mjp::Checkpoint> DefaultDit();

}  // namespace mjp::app

#endif  // APPS_BENCH_DEFAULT_NETWORKS_H_
