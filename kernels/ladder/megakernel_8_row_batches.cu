// Rung 8: two row batches. While the values of one batch of 16 rows are on their way, the MMA warps
// multiply the other one, with the same weights from shared memory, and the epilogue warps likewise
// (ping-pong): 32 rows cost little more than 16. The megakernel is this with every layer of a
// U-Net, the sampler between passes, and values that carry their epoch in a mantissa bit.

#include "kernels/ladder/megakernel_roles.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(2 * kChainThreads) RowBatchesKernel(const ChainArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  RoleMemory& memory = *reinterpret_cast<RoleMemory*>(shared);
  if (a.batches == 2) {
    RunRoles<2>(a, memory);
  } else {
    RunRoles<1>(a, memory);
  }
}

}  // namespace

void ChainByRowBatches(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<RowBatchesKernel>(a, 2 * kChainThreads, sizeof(RoleMemory), stream);
}

}  // namespace mjp::ladder
