// x = sqrt_a clean + sqrt_1ma start on the first held[n] elements of each chunk n, or on all of a
// chunk of which some are held; the rest is left. A thread per element of 128 in a block: three
// reads and a write of 4 bytes where it is held, one read elsewhere. A chunk is a few hundred
// bytes, so a step costs what a launch costs.

#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/sampler/hold_prefix.cuh"
#include "kernels/shared/held_element.h"

namespace mjp {
namespace {

constexpr int kThreads = 128;

__global__ void HoldPrefixKernel(const HoldPrefixArgs a) {
  WaitForPredecessor();
  ReleaseSuccessor();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= a.environments * a.elements) return;
  const int held = a.held[i / a.elements];
  if (a.whole ? held == 0 : i % a.elements >= held) return;
  a.x[i] = HeldElement(a.sqrt_a, a.sqrt_1ma, a.clean[i], a.start[i]);
}

}  // namespace

void LaunchHoldPrefix(const HoldPrefixArgs& a, cudaStream_t stream) {
  LaunchShape shape;
  shape.grid = dim3((a.environments * a.elements + kThreads - 1) / kThreads);
  shape.block = dim3(kThreads);
  Launch(HoldPrefixKernel, shape, stream, "hold prefix", a);
}

}  // namespace mjp
