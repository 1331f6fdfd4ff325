#ifndef KERNELS_CUDA_PRIMITIVES_GRAPH_CAPTURE_H_
#define KERNELS_CUDA_PRIMITIVES_GRAPH_CAPTURE_H_

#include <functional>

#include "kernels/cuda/primitives/cuda_raii.h"

namespace mjp {

// The graph of what `work` enqueues on `stream`, none of which runs. What `work` throws comes out
// again once the stream no longer captures.
CudaGraph CaptureGraph(cudaStream_t stream, const std::function<void()>& work);

using LoopWork = std::function<void(const cudaGraphConditionalHandle&)>;

// Adds a loop to the graph that `stream` is capturing: what `body` enqueues on `loop_stream` is
// repeated until one of its kernels sets the handle to 0; at least once. With `before` only if a
// kernel that it enqueues on `stream` sets the handle to 1.
void CaptureLoop(cudaStream_t stream, cudaStream_t loop_stream, const LoopWork& body,
                 const LoopWork& before = {});

// Whether `stream` is capturing.
bool IsCapturing(cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_PRIMITIVES_GRAPH_CAPTURE_H_
