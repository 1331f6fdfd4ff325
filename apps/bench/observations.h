#ifndef APPS_BENCH_OBSERVATIONS_H_
#define APPS_BENCH_OBSERVATIONS_H_

#include <vector>

#include "policy/pictures/page_locked.h"
#include "policy/policy.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

// Observations of `count` environments at the benchmark's starts; of a policy whose cameras are not
// Push-T's, pictures of slopes, in page-locked memory if that is asked for.
class BenchObservations {
 public:
  BenchObservations(const mjp::Checkpoint& checkpoint, int count, bool page_locked = false);

  // The inputs of the next decision: the same observations, other noise.
  mjp::PolicyInput Next();
  // The same with ready features in place of pictures, where the network can take them.
  mjp::PolicyInput NextChunk();

 private:
  std::vector<mjp::FlatScene> scenes_;
  mjp::PictureMemory frames_;
  std::vector<float> state_, environment_, global_cond_;
  std::vector<mjp::NoiseKey> keys_;
  std::vector<std::vector<int>> instructions_;  // of a policy that reads them
};

}  // namespace mjp::app

#endif  // APPS_BENCH_OBSERVATIONS_H_
