#ifndef POLICY_ACT_ACT_TRACE_H_
#define POLICY_ACT_ACT_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/features.h"
#include "policy/policy.h"

namespace mjp::cpu {

// Keeps a decision's intermediates, some environments at a time, in the layouts of the goldens.
class ActTrace {
 public:
  ActTrace(PolicyTrace& trace, int environments) : trace_(trace), environments_(environments) {}

  // values (count, rows, width) of environments [first, first + count), as (rows, environments,
  // width).
  void Keep(const std::string& name, const float* values, int first, int count, int rows,
            int width);
  // One environment's map: (environments, channels, height, width).
  void KeepMap(const std::string& name, const Features& map, int frame, int environment);
  // values (count, width), as (environments, width).
  void KeepVector(const std::string& name, const float* values, int first, int count, int width);
  // What does not come environment by environment: the position embeddings of the tokens, and the
  // normalised actions (environments, horizon, dim).
  void Finish(const std::vector<float>& positions, int tokens, int width, const float* actions,
              int horizon, int dim);

 private:
  Tensor& Place(const std::string& name, std::vector<int64_t> shape);

  PolicyTrace& trace_;
  int environments_;
};

}  // namespace mjp::cpu

#endif  // POLICY_ACT_ACT_TRACE_H_
