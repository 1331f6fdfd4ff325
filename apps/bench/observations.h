#ifndef APPS_BENCH_OBSERVATIONS_H_
#define APPS_BENCH_OBSERVATIONS_H_

#include <vector>

#include "policy/policy.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

// Observations of `count` environments at the benchmark's starts; of a policy whose cameras are not
// Push-T's, pictures of slopes.
class BenchObservations {
 public:
  BenchObservations(const mjp::Checkpoint& checkpoint, int count);

  // The inputs of the next decision: the same observations, other noise.
  mjp::PolicyInput Next();
  // The same with ready features in place of pictures, where the network can take them.
  mjp::PolicyInput NextChunk();

 private:
  std::vector<mjp::FlatScene> scenes_;
  std::vector<uint8_t> frames_;
  std::vector<float> state_, environment_, global_cond_;
  std::vector<mjp::NoiseKey> keys_;
  std::vector<std::vector<int>> instructions_;  // of a policy that reads them
};

}  // namespace mjp::app

#endif  // APPS_BENCH_OBSERVATIONS_H_
