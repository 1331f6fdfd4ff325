#ifndef KERNELS_CUDA_ROW_KERNEL_ROLES_CUH_
#define KERNELS_CUDA_ROW_KERNEL_ROLES_CUH_

#include "kernels/cuda/primitives/tensor_clock.cuh"
#include "kernels/cuda/row_kernel/epilogue.cuh"
#include "kernels/cuda/row_kernel/products.cuh"

// The two roles of a CTA's warps. Half of them multiply, the others run epilogues and the sampler's
// steps; each prepares its next layer while the other one works.

namespace mjp::row_kernel {

// Barriers from one role to the other.
template <Signal kSignal>
__device__ __forceinline__ void Send() {
  asm volatile("bar.arrive %0, %1;" ::"r"(kSignal), "n"(kThreads) : "memory");
}
template <Signal kSignal>
__device__ __forceinline__ void Await() {
  asm volatile("bar.sync %0, %1;" ::"r"(kSignal), "n"(kThreads) : "memory");
}

// The outputs of a cluster's layers, counted from the launch on. Two barriers count the bytes of
// two outputs in turn: a CTA sends output n when it has received all of n - 1, and so each of them
// all of n - 2.
struct Output {
  int number;

  __device__ __forceinline__ uint32_t Barrier(const Cta& cta) const {
    return SharedAddress(cta.shared + cta.a.shared.barriers) + number % 2 * 8;
  }
  // Waits, in all threads of the warps that multiply, until its `bytes` are in this CTA.
  __device__ __forceinline__ void Receive(const Cta& cta, int bytes) const {
    if (threadIdx.x == kRoleThreads) ExpectBytes(Barrier(cta), bytes);
    AwaitBarrier(Barrier(cta), number / 2 % 2);
  }
};

// The products of pass `pass` of the launch, by the warps that multiply. The input of the first
// layer is there when x has been loaded, or when the sampler's step has been taken.
template <Format F, bool kCluster, int kChunks>
__device__ __forceinline__ void MultiplyLayers(const Cta& cta, WeightPipeline<kChunks>& weights,
                                               int pass) {
  const int warp = static_cast<int>(threadIdx.x) / 32 - kWarps;
#pragma unroll 1
  for (int i = 0; i < cta.a.layer_count; ++i) {
    const Layer s = cta.LayerAt(i);
    const auto wait = [&] {
      if (i > 0 && kCluster) {
        Output{pass * (cta.a.layer_count - 1) + i - 1}.Receive(cta, s.input_bytes);
      } else if (pass > 0 || !kCluster) {
        Await<kInputReady>();
      }
    };
    const auto& layout = cta.a.shared;
    bool has = false;
    if (s.n_tiles == 1) has = MultiplyTiles<F, 1>(weights, s, layout, cta.shared, warp, wait);
    if (s.n_tiles == 2) has = MultiplyTiles<F, 2>(weights, s, layout, cta.shared, warp, wait);
    if (s.n_tiles == 4) has = MultiplyTiles<F, 4>(weights, s, layout, cta.shared, warp, wait);
    Send<kSumsReady>();
    if (has) weights.Advance();
  }
}

// Behind a layer's products, for the time of its epilogue (TensorClock).
inline constexpr int kClockProducts = 12;

// The epilogues of a layer's norm groups in the CTA. A warp prepares its first one before the sums
// are there: where a CTA has up to kWarps / 2 groups, while others still run the layer before.
template <typename T, bool kCluster, int kPairs>
__device__ __forceinline__ void RunGroups(const Cta& cta, const Layer& s, const FilmRows& film,
                                          const Output& output) {
  const uint32_t barrier = kCluster ? output.Barrier(cta) : 0;
  const int groups = s.groups;
  int group = threadIdx.x / 32 ^ output.number % 2 * (kWarps / 2);
#pragma unroll 1
  for (bool waits = true;; waits = false) {
    // zeros of a warp without a group: otherwise registers would be kept from layer to layer
    GroupEpilogue<T, kCluster, kPairs> epilogue = {};
    if (group < groups) epilogue.Prepare(cta, s, film, group, barrier);
    if (waits) Await<kSumsReady>();  // of all warps the same instruction
    if (group >= groups) {
      if (waits && group == kWarps - 1) {
        TensorClock clock;
        clock.Keep(kClockProducts);
        clock.End();
      }
      return;
    }
    epilogue.Run(cta);
    group += kWarps;
  }
}

// The epilogues of pass `pass` of the launch. Returns when the head's partial sums are there.
template <Format F, bool kCluster>
__device__ __forceinline__ void RunEpilogues(const Cta& cta, const FilmRows& film, int pass) {
  using T = Storage<F>;
#pragma unroll 1
  for (int i = 0; i + 1 < cta.a.layer_count; ++i) {
    const Layer& s = cta.LayerAt(i);
    const Output output = {pass * (cta.a.layer_count - 1) + i};
    if (s.lane_pairs == 1) RunGroups<T, kCluster, 1>(cta, s, film, output);
    if (s.lane_pairs == 2) RunGroups<T, kCluster, 2>(cta, s, film, output);
    if (s.lane_pairs == 4) RunGroups<T, kCluster, 4>(cta, s, film, output);
    if constexpr (!kCluster) Send<kInputReady>();
  }
  Await<kSumsReady>();
}

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_ROLES_CUH_
