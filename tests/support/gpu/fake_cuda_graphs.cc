// Graphs and captures of the fake CUDA runtime (fake_cuda.h).

#include <cuda_runtime_api.h>

#include <utility>

#include "tests/support/gpu/fake_cuda_objects.h"

using namespace mjp_test::fake;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, "cudaStreamBeginCapture");
  if (stream == nullptr || stream->capture != nullptr) return Say(cudaErrorIllegalState);
  stream->capture = new Graph;
  stream->invalid = false;
  Add(stream->capture, kGraph);
  ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph,
                                          const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                          cudaStreamCaptureMode) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, "cudaStreamBeginCaptureToGraph");
  if (stream == nullptr || stream->capture != nullptr) return Say(cudaErrorIllegalState);
  stream->capture = reinterpret_cast<Graph*>(graph);
  stream->invalid = false;
  ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, "cudaStreamEndCapture");
  if (stream == nullptr || stream->capture == nullptr) return Say(cudaErrorIllegalState);
  Graph* captured = std::exchange(stream->capture, nullptr);
  --captures;
  *graph = reinterpret_cast<cudaGraph_t>(captured);
  if (!stream->invalid) return cudaSuccess;
  if (Remove(captured, kGraph, "cudaStreamEndCapture")) DeleteGraph(captured);
  *graph = nullptr;
  return Say(cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const auto lock = Lock();
  const Stream* stream = StreamOf(handle, "cudaStreamIsCapturing");
  if (stream == nullptr) return Say(cudaErrorInvalidResourceHandle);
  *status =
      stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  const auto lock = Lock();
  Stream* stream = StreamOf(handle, "cudaStreamGetCaptureInfo");
  if (stream == nullptr) return Say(cudaErrorInvalidResourceHandle);
  *graph = reinterpret_cast<cudaGraph_t>(stream->capture);
  *dependencies = nullptr;
  *edges = nullptr;
  *count = 0;
  return cudaStreamIsCapturing(handle, status);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*,
                                                const cudaGraphEdgeData*, size_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t,
                                             unsigned, unsigned) {
  *handle = 1;
  return cudaSuccess;
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t*,
                             const cudaGraphEdgeData*, size_t, cudaGraphNodeParams* parameters) {
  const auto lock = Lock();
  if (!Known(handle, kGraph, "cudaGraphAddNode")) return Say(cudaErrorInvalidValue);
  auto* graph = reinterpret_cast<Graph*>(handle);
  graph->bodies.reserve(16);  // the caller is given the place of one
  graph->bodies.push_back(reinterpret_cast<cudaGraph_t>(new Graph));
  *node = nullptr;
  parameters->conditional.phGraph_out = &graph->bodies.back();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const auto lock = Lock();
  if (!Known(graph, kGraph, "cudaGraphInstantiate")) return Say(cudaErrorInvalidValue);
  auto* copy = new Graph{reinterpret_cast<Graph*>(graph)->work, {}};
  *exec = static_cast<cudaGraphExec_t>(Add(copy, kExec));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  const auto lock = Lock();
  if (!Known(exec, kExec, "cudaGraphLaunch")) return Say(cudaErrorInvalidResourceHandle);
  for (const auto& work : reinterpret_cast<Graph*>(exec)->work) work();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const auto lock = Lock();
  if (!Remove(graph, kGraph, "cudaGraphDestroy")) return Say(cudaErrorInvalidValue);
  DeleteGraph(reinterpret_cast<Graph*>(graph));
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const auto lock = Lock();
  if (!Remove(exec, kExec, "cudaGraphExecDestroy")) return Say(cudaErrorInvalidValue);
  delete reinterpret_cast<Graph*>(exec);
  return cudaSuccess;
}

}  // extern "C"
