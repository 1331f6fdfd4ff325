#include "policy/cuda/graph_loop.h"

#include "kernels/cuda_check.h"

namespace dp {

void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream,
                 const std::function<void(const cudaGraphConditionalHandle&)>& body) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* before = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  CheckCuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count),
            "capture");
  cudaGraphConditionalHandle loop;
  CheckCuda(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault),
            "condition of the loop");
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = loop;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  CheckCuda(cudaGraphAddNode(&node, graph, before, edges, count, &params), "loop over passes");
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

}  // namespace dp
