// Rung 7: warp specialisation. Of a block's 512 threads half multiply, the other half run
// epilogues; each has its loop over the layers. No warp changes from one job to the other, so the
// MMA warps poll for the next layer's input while the epilogue warps still normalise. Alone it
// loses: 100 us a chain where rung 6 takes 83.6 (H200, 16 layers). Both roles poll at once,
// which loads L2. It pays in rung 8. Roles of warps with a main loop each are HazyResearch's
// Megakernels'.

#include "kernels/ladder/megakernel_roles.cuh"

namespace mjp::ladder {
namespace {

__global__ void __launch_bounds__(2 * kChainThreads) RolesKernel(const ChainArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  RunRoles<1>(a, *reinterpret_cast<RoleMemory*>(shared));
}

}  // namespace

void ChainByRoles(const ChainArgs& a, cudaStream_t stream) {
  LaunchResident<RolesKernel>(a, 2 * kChainThreads, sizeof(RoleMemory), stream);
}

}  // namespace mjp::ladder
