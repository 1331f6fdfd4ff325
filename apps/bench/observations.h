#ifndef APPS_BENCH_OBSERVATIONS_H_
#define APPS_BENCH_OBSERVATIONS_H_

#include <vector>

#include "policy/pictures/page_locked.h"
#include "policy/policy.h"
#include "tasks/pusht/pictures/rasterise.h"

namespace mjp::app {

// What a policy sees: scenes that it draws itself, where its cameras are Push-T's; or pictures of
// slopes, in memory of either kind.
enum class ObservedPictures { kScenes, kPageable, kPageLocked };

// Observations of `count` environments at the benchmark's starts.
class BenchObservations {
 public:
  BenchObservations(const mjp::Checkpoint& checkpoint, int count,
                    ObservedPictures pictures = ObservedPictures::kScenes);

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
