#include "kernels/cuda/primitives/graph_capture.h"

namespace mjp {
CudaGraph CaptureGraph(cudaStream_t stream, const std::function<void()>& work) {
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream, &graph));
    const CudaGraph unused(graph);
    throw;
  }
  const cudaError_t status = cudaStreamEndCapture(stream, &graph);
  CudaGraph captured(graph);
  CheckCuda(status, "end of the capture");
  return captured;
}

void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream, const LoopWork& body,
                 const LoopWork& before) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  const auto read_capture = [&] {
    CheckCuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &last, &edges, &count),
              "capture");
  };
  read_capture();
  cudaGraphConditionalHandle loop;
  CheckCuda(
      cudaGraphConditionalHandleCreate(&loop, graph, before ? 0 : 1, cudaGraphCondAssignDefault),
      "condition of the loop");
  if (before) before(loop);
  read_capture();
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = loop;
  params.conditional.type = cudaGraphCondTypeWhile;
  params.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  CheckCuda(cudaGraphAddNode(&node, graph, last, edges, count, &params), "loop over passes");
  cudaGraph_t inner = params.conditional.phGraph_out[0];  // the outer graph's
  CheckCuda(cudaStreamBeginCaptureToGraph(loop_stream, inner, nullptr, nullptr, 0,
                                          cudaStreamCaptureModeThreadLocal),
            "capture of a pass");
  try {
    body(loop);
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(loop_stream, &inner));
    throw;
  }
  CheckCuda(cudaStreamEndCapture(loop_stream, &inner), "end of the capture of a pass");
  CheckCuda(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                                cudaStreamSetCaptureDependencies),
            "capture");
}

bool IsCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CheckCuda(cudaStreamIsCapturing(stream, &status), "capture");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace mjp
