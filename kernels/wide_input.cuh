#ifndef KERNELS_WIDE_INPUT_CUH_
#define KERNELS_WIDE_INPUT_CUH_

#include "kernels/wide_finish.cuh"

// The input of a stage's products: asked for, waited for, put where the tensor cores read it.

namespace dp {

// Zeros around the rows of each eight channels.
__device__ __forceinline__ void ClearBorders(const WideRoute& r, uint8_t* input) {
  const int block_log2 = r.rows_log2 + r.in_log2, rows = 1 << block_log2;
  const int zeros = 1 << r.zeros_log2, thread = threadIdx.x;
  const int count = (r.vectors >> block_log2) << r.zeros_log2;
  const int at = thread + ((thread >> r.zeros_log2) << block_log2) +
                 ((thread & (zeros - 1)) < r.left ? 0 : rows);
  const int step = kChainThreads + ((kChainThreads >> r.zeros_log2) << block_log2);
  auto* to = reinterpret_cast<uint4*>(input) + at;
  for (int i = thread; i < count; i += kChainThreads, to += step) *to = make_uint4(0, 0, 0, 0);
}

// Fills the input with in channels of the team's rows from `channel0` on; first() and then() are
// called while they are on their way. A thread's vectors are as far apart as 256 threads are, a
// whole number of eights of channels.
template <typename First, typename Then>
__device__ __forceinline__ void CollectInput(ChainBlock& b, const WideRoute& r, int channel0,
                                             uint8_t* input, const First& first, const Then& then) {
  constexpr int kAtOnce = 4;
  const int thread = threadIdx.x, row = thread & ((1 << r.rows_log2) - 1);
  const int unit = thread >> r.rows_log2, block_log2 = r.rows_log2 + r.in_log2;
  const WideSource s = r.source[channel0 >= r.source_channels];
  const uint8_t* from = RowAt(s.from + b.parity * s.pass, row, s.set, s.log2) +
                        (((((channel0 / kFusedPack) << r.in_log2) + unit) * kPackBytes) << s.log2);
  const int from_step = ((kChainThreads >> r.rows_log2) * kPackBytes) << s.log2;
  int at = thread + ((thread >> block_log2) << r.zeros_log2) + r.left;
  if (r.even > 0) {
    const int position = unit & ((1 << r.in_log2) - 1);
    const int place = (position & 1 ? 0 : r.even) + (position + 1) / 2;
    at += ((place - position) << r.rows_log2) - r.left;
  }
  auto* to = reinterpret_cast<uint4*>(input) + at;
  const int to_step = kChainThreads + ((kChainThreads >> block_log2) << r.zeros_log2);
  for (int left = r.vectors - thread, begun = false; !begun || left > 0; begun = true) {
    uint4 w[kAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      w[k] = left > k * kChainThreads ? LoadVector(from + k * from_step) : make_uint4(1, 0, 1, 0);
    if (!begun) first(), ClearBorders(r, input), then();
    for (int tries = 0;; ++tries) {
      bool missing = false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (IsFinished(w[k])) continue;
        missing = true;
        w[k] = LoadVector(from + k * from_step);
      }
      if (!missing || b.watch.GivesUp(tries)) break;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (left > k * kChainThreads) to[k * to_step] = w[k];
    left -= kAtOnce * kChainThreads;
    from += kAtOnce * from_step, to += kAtOnce * to_step;
  }
}

}  // namespace dp

#endif  // KERNELS_WIDE_INPUT_CUH_
