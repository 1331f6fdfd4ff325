#ifndef KERNELS_WIDE_INPUT_CUH_
#define KERNELS_WIDE_INPUT_CUH_

#include "kernels/wide_route.cuh"

// The input of a stage's products: asked for, waited for, put where the tensor cores read it.

namespace dp {

// Zeros around the rows of each eight channels.
__device__ __forceinline__ void ClearBorders(const WideRoute& r, int thread, uint8_t* input) {
  const int block_log2 = r.rows_log2 + r.in_log2, rows = 1 << block_log2;
  const int zeros = 1 << r.zeros_log2;
  const int count = (r.vectors >> block_log2) << r.zeros_log2;
  const int at = thread + ((thread >> r.zeros_log2) << block_log2) +
                 ((thread & (zeros - 1)) < r.left ? 0 : rows);
  const int step = kChainThreads + ((kChainThreads >> r.zeros_log2) << block_log2);
  auto* to = reinterpret_cast<uint4*>(input) + at;
  for (int i = thread; i < count; i += kChainThreads, to += step) *to = make_uint4(0, 0, 0, 0);
}

// Fills the input with in channels of the team's rows. A thread's vectors are as far apart as 256
// threads are, a whole number of eights of channels.
class WideCollector {
 public:
  // From in channel `channel0` on.
  __device__ __forceinline__ WideCollector(const ChainBlock& b, const WideRoute& r, int thread,
                                           int channel0, uint8_t* input) {
    const int row = thread & ((1 << r.rows_log2) - 1), unit = thread >> r.rows_log2;
    const int block_log2 = r.rows_log2 + r.in_log2;
    const WideSource s = r.source[channel0 >= r.source_channels];
    from_ = RowAt(s.from + b.parity * s.pass, row, s.set, s.log2) +
            (((((channel0 / kFusedPack) << r.in_log2) + unit) * kPackBytes) << s.log2);
    from_step_ = ((kChainThreads >> r.rows_log2) * kPackBytes) << s.log2;
    int at = thread + ((thread >> block_log2) << r.zeros_log2) + r.left;
    if (r.even > 0) {
      const int position = unit & ((1 << r.in_log2) - 1);
      const int place = (position & 1 ? 0 : r.even) + (position + 1) / 2;
      at += ((place - position) << r.rows_log2) - r.left;
    }
    to_ = reinterpret_cast<uint4*>(input) + at;
    to_step_ = kChainThreads + ((kChainThreads >> block_log2) << r.zeros_log2);
    left_ = r.vectors - thread;
  }

  // Asks for the first vectors, or the next ones.
  __device__ __forceinline__ void Ask() {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      w_[k] =
          left_ > k * kChainThreads ? LoadVector(from_ + k * from_step_) : make_uint4(1, 0, 1, 0);
  }
  // Puts what was asked for and all others in their places, once they are there.
  __device__ __forceinline__ void Take(WaitWatch& watch) {
    for (;; Ask()) {
      TakeAsked(watch);
      left_ -= kAtOnce * kChainThreads;
      if (left_ <= 0) break;
      from_ += kAtOnce * from_step_, to_ += kAtOnce * to_step_;
    }
  }

 private:
  static constexpr int kAtOnce = 4;

  __device__ __forceinline__ void TakeAsked(WaitWatch& watch) {
    for (int tries = 0;; ++tries) {
      bool missing = false;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (IsFinished(w_[k])) continue;
        missing = true;
        w_[k] = LoadVector(from_ + k * from_step_);
      }
      if (!missing || watch.GivesUp(tries)) break;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (left_ > k * kChainThreads) to_[k * to_step_] = w_[k];
  }

  const uint8_t* from_;
  uint4* to_;
  int from_step_, to_step_, left_;
  uint4 w_[kAtOnce];
};

}  // namespace dp

#endif  // KERNELS_WIDE_INPUT_CUH_
