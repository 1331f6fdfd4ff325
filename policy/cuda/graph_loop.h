#ifndef POLICY_CUDA_GRAPH_LOOP_H_
#define POLICY_CUDA_GRAPH_LOOP_H_

#include <cuda_runtime_api.h>

#include <functional>

namespace mjp {

using LoopWork = std::function<void(const cudaGraphConditionalHandle&)>;

// Adds a loop to the graph that `stream` is capturing: what `body` enqueues on `loop_stream` is
// repeated until one of its kernels sets the handle to 0; at least once. With `before` only if a
// kernel that it enqueues on `stream` sets the handle to 1.
void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream, const LoopWork& body,
                 const LoopWork& before = {});

}  // namespace mjp

#endif  // POLICY_CUDA_GRAPH_LOOP_H_
