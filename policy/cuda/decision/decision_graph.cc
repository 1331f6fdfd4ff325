#include "policy/cuda/decision/decision_graph.h"

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/graph_capture.h"

namespace mjp {

void DecisionGraphs::Launch(PictureSource source, cudaStream_t stream,
                            const std::function<void()>& enqueue) {
  CudaGraphExec& graph = graphs_[static_cast<size_t>(source)];
  if (graph == nullptr) graph = InstantiateGraph(CaptureGraph(stream, enqueue));
  CheckCuda(cudaGraphLaunch(graph.get(), stream), "launch of the decision");
}

}  // namespace mjp
