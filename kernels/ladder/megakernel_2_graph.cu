// Rung 2: the same launches, recorded once as a CUDA graph: the CPU enqueues a chain by one call,
// and the GPU goes from layer to layer by itself. What is left between two layers: the last block
// ends, the next grid starts, and its first loads wait for memory.

#include "kernels/cuda/primitives/graph_capture.h"
#include "kernels/ladder/megakernel.cuh"

namespace mjp::ladder {

CudaGraphExec GraphOfLaunches(const ChainArgs& args) {
  const CudaStream stream = MakeCudaStream();
  return InstantiateGraph(CaptureGraph(stream.get(), [&] { ChainOfLaunches(args, stream.get()); }));
}

}  // namespace mjp::ladder
