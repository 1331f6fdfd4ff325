#include "policy/cuda/decision/decision_graph.h"

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"

namespace mjp {

void DecisionGraphs::Launch(PictureSource source, cudaStream_t stream,
                            const std::function<void()>& enqueue, int number) {
  CudaGraphExec& graph = graphs_[{source, number}];
  if (graph == nullptr) graph = InstantiateGraph(CaptureGraph(stream, enqueue));
  CheckCuda(cudaGraphLaunch(graph.get(), stream), "launch of the decision");
}

}  // namespace mjp
