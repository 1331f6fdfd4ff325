// Rung 3: four output channels per block.
//
// A value of x, once in a register, serves four channels: x moves a quarter as often, and a thread
// has 32 independent chains of multiply-adds, where rung 2 has 8, to hide their latency. (For a
// single row it loses to rung 2: too few blocks to fill the device.) What remains is float32: twice
// the bytes of half precision and a sixteenth of the tensor cores' rate. The shipped launcher takes
// over: kernels/cuda/conv/implicit_gemm_mma.cu (half precision, tensor cores, any batch). The
// ladder of the megakernel goes on from there: all layers in one launch, with the norms.

#include "kernels/ladder/conv1d_tile.cuh"

namespace mjp::ladder {

void Conv1dTile(const Conv1dArgs& a, cudaStream_t stream) {
  LaunchConv1dTile<4>(a, "tiled conv1d", stream);
}

}  // namespace mjp::ladder
