// Rung 3: four output channels per block.
//
// A value of x, once in a register, serves four channels: x moves a quarter as often, four
// independent chains of multiply-adds hide their latency. (For a single row it loses to rung 2: too
// few blocks to fill the device.) What remains is float32: twice the bytes of half precision and a
// sixteenth of the tensor cores' rate. The shipped launchers take over:
// kernels/cuda/conv/implicit_gemm_mma.cu (half precision, tensor cores, any batch) and
// kernels/cuda/norm_conv/norm_conv.cu (weights in the order of the tensor cores' fragments, loaded
// for while the layer before still runs, the norm applied on the way in).

#include "kernels/ladder/conv1d_tile.cuh"

namespace mjp::ladder {

void Conv1dTile(const Conv1dArgs& a, cudaStream_t stream) {
  LaunchConv1dTile<4>(a, "tiled conv1d", stream);
}

}  // namespace mjp::ladder
