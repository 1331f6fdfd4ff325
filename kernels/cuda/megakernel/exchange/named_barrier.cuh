#ifndef KERNELS_CUDA_MEGAKERNEL_EXCHANGE_NAMED_BARRIER_CUH_
#define KERNELS_CUDA_MEGAKERNEL_EXCHANGE_NAMED_BARRIER_CUH_

#include "kernels/cuda/megakernel/megakernel.cuh"

// The barriers of a CTA that join its roles; README.md, "Who does what".

namespace mjp::megakernel {

// Barriers among the MMA warps, among the epilogue warps, or from one to the other, the last two of
// Hopper's form for each row batch; 0 is the sampler's (SyncPicardThreads).
enum NamedBarrier {
  kTileMoments = 1,  // of the threads with values of an output tile
  kMmaBarrier,
  kPassBarrier,
  kStepBarrier,
  kPartialSumsSent,
  kActivationPublished = kPartialSumsSent + kMaxRowBatches,
  kSecondTileMoments = kPassBarrier  // portable: of the other half's tile; it has no pass barrier
};
template <NamedBarrier kBarrier>
inline constexpr int kThreadsAt = kBarrier == kMmaBarrier    ? kMmaThreads
                                  : kBarrier == kStepBarrier ? kEpilogueThreads
                                                             : kSpecializedThreads;
template <NamedBarrier kBarrier>
__device__ __forceinline__ void WaitAtBarrier(int batch = 0) {
  asm volatile("bar.sync %0, %1;" ::"r"(kBarrier + batch), "n"(kThreadsAt<kBarrier>) : "memory");
}
template <NamedBarrier kBarrier>
__device__ __forceinline__ void ArriveAtBarrier(int batch = 0) {
  asm volatile("bar.arrive %0, %1;" ::"r"(kBarrier + batch), "n"(kThreadsAt<kBarrier>) : "memory");
}

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_EXCHANGE_NAMED_BARRIER_CUH_
