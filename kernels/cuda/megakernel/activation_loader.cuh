#ifndef KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_
#define KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// The input of a stage's products: asked for, waited for, put where the tensor cores read it.

namespace mjp {

// Zeros around the rows of each eight channels.
__device__ __forceinline__ void ClearBorders(const WideRoute& r, int thread, uint8_t* input) {
  const int block_log2 = r.rows_log2 + r.in_log2, rows = 1 << block_log2;
  const int zeros = 1 << r.zeros_log2;
  const int count = (r.vectors >> block_log2) << r.zeros_log2;
  const int at = thread + ((thread >> r.zeros_log2) << block_log2) +
                 ((thread & (zeros - 1)) < r.left ? 0 : rows);
  const int step = kChainThreads + ((kChainThreads >> r.zeros_log2) << block_log2);
  auto* to = reinterpret_cast<uint4*>(input) + at;
#pragma unroll 1
  for (int i = thread; i < count; i += kChainThreads, to += step) *to = make_uint4(0, 0, 0, 0);
}

// Fills the input with in channels of the team's rows. A thread's vectors are as far apart as 256
// threads are, a whole number of eights of channels.
class WideCollector {
 public:
  // From in channel `channel0` on, which `s` has.
  __device__ __forceinline__ WideCollector(const ChainBlock& b, const WideRoute& r,
                                           const WideSource& s, int thread, int channel0,
                                           uint8_t* input) {
    const int row = thread & ((1 << r.rows_log2) - 1), unit = thread >> r.rows_log2;
    const int block_log2 = r.rows_log2 + r.in_log2;
    wave_ = 2 * s.pass;
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

  // Goes on to the next wave.
  __device__ __forceinline__ void NextWave() { from_ += wave_; }
  // Asks for the first vectors, or the next ones.
  __device__ __forceinline__ void Ask() {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      w_[k] =
          left_ > k * kChainThreads ? LoadVector(from_ + k * from_step_) : make_uint4(1, 0, 1, 0);
  }
  // Leaves them to be asked for when they are collected.
  __device__ __forceinline__ void AskLater() {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      w_[k] = left_ > k * kChainThreads ? make_uint4(0, 0, 0, 0) : make_uint4(1, 0, 1, 0);
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
  // Both where each thread has kCount vectors; kSome: or fewer. begin() ends when they are to be
  // asked for: by then all is worked out. kAsked: the first ones have been.
  template <int kCount, bool kSome, bool kAsked, typename Begin>
  __device__ __forceinline__ void CollectCount(WaitWatch& watch, const Begin& begin) {
    constexpr int kNow = kCount < kAtOnce ? kCount : kAtOnce;
    const bool mine = !kSome || left_ > 0;
    const uint8_t* from = from_;
    uint32_t to[kNow];
#pragma unroll
    for (int k = 0; k < kNow; ++k) to[k] = SharedAddress(to_ + k * to_step_), WorkOut(to[k]);
    begin();
#pragma unroll 1
    for (int done = kNow;; done += kNow) {
#pragma unroll
      for (int k = 0; k < kNow; ++k) {
        if (kAsked && done == kNow) break;
        w_[k] = mine ? LoadVector(from + k * from_step_) : make_uint4(1, 0, 1, 0);
      }
      if (Missing<kNow>()) Poll<kNow>(from, watch, mine);
#pragma unroll
      for (int k = 0; k < kNow; ++k)
        if (mine) StoreShared(to[k], w_[k]);
      if (done >= kCount) break;
      from += kNow * from_step_;
#pragma unroll
      for (int k = 0; k < kNow; ++k) to[k] += kNow * to_step_ * static_cast<int>(sizeof(uint4));
    }
  }

 private:
  static constexpr int kAtOnce = 4;

  // Whether any first word of four is zero.
  template <int kNow>
  __device__ __forceinline__ bool Missing() const {
    uint32_t least = ~0u;
#pragma unroll
    for (int k = 0; k < kNow; ++k) least = min(least, min(w_[k].x, w_[k].z));
    return least == 0;
  }
  template <int kNow>
  __device__ __forceinline__ void Poll(const uint8_t* from, WaitWatch& watch, bool mine) {
    int tries = 0;
    do {
#pragma unroll
      for (int k = 0; k < kNow; ++k)
        if (mine && !IsFinished(w_[k])) w_[k] = LoadVector(from + k * from_step_);
    } while (Missing<kNow>() && !watch.GivesUp(tries++));
  }

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
  uint32_t wave_;  // bytes to the next one
  int from_step_, to_step_, left_;
  uint4 w_[kAtOnce];
};

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_
