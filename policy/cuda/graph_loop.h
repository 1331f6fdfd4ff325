#ifndef POLICY_CUDA_GRAPH_LOOP_H_
#define POLICY_CUDA_GRAPH_LOOP_H_

#include <cuda_runtime_api.h>

#include <functional>

namespace dp {

// Adds a loop to the graph that `stream` is capturing: what `body` enqueues on `loop_stream` is
// repeated until one of its kernels sets the handle to 0; at least once.
void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream,
                 const std::function<void(const cudaGraphConditionalHandle&)>& body);

}  // namespace dp

#endif  // POLICY_CUDA_GRAPH_LOOP_H_
