#include "policy/cuda/graph_loop.h"

#include "kernels/cuda/primitives/cuda_check.h"

namespace mjp {

void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream, const LoopWork& body,
                 const LoopWork& before) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  const auto look = [&] {
    CheckCuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, &edges, &count),
              "capture");
  };
  look();
  cudaGraphConditionalHandle loop;
  CheckCuda(
      cudaGraphConditionalHandleCreate(&loop, graph, before ? 0 : 1, cudaGraphCondAssignDefault),
      "condition of the loop");
  if (before) before(loop);
  look();
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = loop;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  CheckCuda(cudaGraphAddNode(&node, graph, last, edges, count, &params), "loop over passes");
  cudaGraph_t inner = params.conditional.phGraph_out[0];
  CheckCuda(cudaStreamBeginCaptureToGraph(loop_stream, inner, nullptr, nullptr, 0,
                                          cudaStreamCaptureModeThreadLocal),
            "capture of a pass");
  body(loop);
  CheckCuda(cudaStreamEndCapture(loop_stream, &inner), "end of the capture of a pass");
  CheckCuda(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                                cudaStreamSetCaptureDependencies),
            "capture");
}

}  // namespace mjp
