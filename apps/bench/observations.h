#ifndef APPS_BENCH_OBSERVATIONS_H_
#define APPS_BENCH_OBSERVATIONS_H_

#include <vector>

#include "policy/policy.h"

namespace pusht {

// Observations of `count` environments at the benchmark's starts.
class BenchObservations {
 public:
  BenchObservations(const dp::PolicyConfig& config, int count);

  // The inputs of the next decision: the same observations, other noise.
  dp::PolicyInput Next();
  // The same with ready features in place of pictures.
  dp::PolicyInput NextChunk();

 private:
  std::vector<dp::FlatScene> scenes_;
  std::vector<float> state_, environment_, global_cond_;
  std::vector<dp::NoiseKey> keys_;
};

}  // namespace pusht

#endif  // APPS_BENCH_OBSERVATIONS_H_
