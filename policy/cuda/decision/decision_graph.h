#ifndef POLICY_CUDA_DECISION_DECISION_GRAPH_H_
#define POLICY_CUDA_DECISION_DECISION_GRAPH_H_

#include <functional>
#include <map>
#include <utility>

#include "kernels/cuda/primitives/cuda_raii.h"
#include "policy/cuda/decision/input_block.h"

namespace mjp {

// The graphs that a decision is launched as: one for each source of its pictures, made when it is
// first needed. Where a batch's pictures arrive in shares, the head of each share's encoder is one
// of its own, number 1 and on.
class DecisionGraphs {
 public:
  // Launches the graph of what `enqueue` puts into `stream`, which must be the same for a source
  // and number each time. Throws Error, and what `enqueue` throws.
  void Launch(PictureSource source, cudaStream_t stream, const std::function<void()>& enqueue,
              int number = 0);

 private:
  std::map<std::pair<PictureSource, int>, CudaGraphExec> graphs_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DECISION_DECISION_GRAPH_H_
