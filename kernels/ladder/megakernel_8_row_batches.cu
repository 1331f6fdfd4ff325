// Rung 8: two row batches. While the values of one batch of 16 rows are on their way, the MMA warps
// multiply the other one, with the same weights from shared memory, and the epilogue warps likewise
// (ping-pong): 32 rows cost little more than 16.
//
// From here to the megakernel. The rungs pay 4 bytes of epoch for 4 bytes of values: a stale value
// is never taken for a new one, and the roles need no barrier. The megakernel has a flag of one
// bit, or none. So no block may be more than a pass ahead of another (I3 in its README.md).
// Activations are cleared, and a fence makes that seen (I5). The barrier kActivationPublished keeps
// MMA warps from polling before their own CTA has published. Besides, it has every layer of a
// U-Net, with a split chosen for each, CTA-local layers, and the sampler between passes. It
// multiplies by wgmma. Bulk copies bring each warp's weights, which it then has in registers. First
// polls are put off.

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
