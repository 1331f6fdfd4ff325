#ifndef KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_
#define KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// The input of a CTA's GEMM tile: polled from L2, and put where the tensor cores read it.

namespace mjp::megakernel {

// Zeros around the rows of each channel block of 8.
__device__ __forceinline__ void ClearHalo(const LayerDescriptor& desc, int thread, uint8_t* input) {
  const int block_log2 = desc.rows_log2 + desc.in_length_log2, rows = 1 << block_log2;
  const int zeros = 1 << desc.halo_log2;
  const int count = (desc.vectors >> block_log2) << desc.halo_log2;
  const int at = thread + ((thread >> desc.halo_log2) << block_log2) +
                 ((thread & (zeros - 1)) < desc.halo ? 0 : rows);
  const int step = kMmaThreads + ((kMmaThreads >> desc.halo_log2) << block_log2);
  auto* to = reinterpret_cast<uint4*>(input) + at;
#pragma unroll 1
  for (int i = thread; i < count; i += kMmaThreads, to += step) *to = make_uint4(0, 0, 0, 0);
}

// Loads a K block of the CTA group's rows into shared memory. A thread's vectors are as far apart
// as 256 threads are, a whole number of channel blocks.
class ActivationLoader {
 public:
  // From in channel `channel0` on, which is one of `s`. row_slot(row): the row slot of the tile's
  // row `row`, from its first one on.
  template <typename RowSlot>
  __device__ __forceinline__ ActivationLoader(const CtaState& cta, const LayerDescriptor& desc,
                                              const ActivationSource& s, int thread, int channel0,
                                              uint8_t* input, const RowSlot& row_slot) {
    const int row = row_slot(thread & ((1 << desc.rows_log2) - 1)), unit = thread >> desc.rows_log2;
    const int block_log2 = desc.rows_log2 + desc.in_length_log2;
    batch_bytes_ = 2 * s.buffer_bytes;
    from_ = RowAt(s.from + cta.epoch * s.buffer_bytes, row, s.row_set_bytes, s.row_set_log2) +
            (((((channel0 / kPackChannels) << desc.in_length_log2) + unit) * kPackBytes)
             << s.row_set_log2);
    from_step_ = ((kMmaThreads >> desc.rows_log2) * kPackBytes) << s.row_set_log2;
    int at = thread + ((thread >> block_log2) << desc.halo_log2) + desc.halo;
    if (desc.even_plane > 0) {
      const int position = unit & ((1 << desc.in_length_log2) - 1);
      const int padded = (position & 1 ? 0 : desc.even_plane) + (position + 1) / 2;
      at += ((padded - position) << desc.rows_log2) - desc.halo;
    }
    to_ = reinterpret_cast<uint4*>(input) + at;
    to_step_ = kMmaThreads + ((kMmaThreads >> block_log2) << desc.halo_log2);
    remaining_ = desc.vectors - thread;
  }
  __device__ __forceinline__ ActivationLoader(const CtaState& cta, const LayerDescriptor& desc,
                                              const ActivationSource& s, int thread, int channel0,
                                              uint8_t* input)
      : ActivationLoader(cta, desc, s, thread, channel0, input, [](int row) { return row; }) {}

  // Goes on to the next row batch.
  __device__ __forceinline__ void NextBatch() { from_ += batch_bytes_; }
  // Issues the loads of the first vectors, or the next ones.
  __device__ __forceinline__ void IssueLoads() {
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      w_[k] =
          remaining_ > k * kMmaThreads ? Load16(from_ + k * from_step_) : make_uint4(1, 0, 1, 0);
  }
  // Marks them as empty, so that Receive issues their loads.
  __device__ __forceinline__ void DeferLoads() {
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      w_[k] = remaining_ > k * kMmaThreads ? make_uint4(0, 0, 0, 0) : make_uint4(1, 0, 1, 0);
  }
  // Polls what was issued and all others, and puts them in their places.
  __device__ __forceinline__ void ReceiveAll(SpinWatchdog& watchdog) {
    for (;; IssueLoads()) {
      ReceiveIssued(watchdog);
      remaining_ -= kInFlight * kMmaThreads;
      if (remaining_ <= 0) break;
      from_ += kInFlight * from_step_, to_ += kInFlight * to_step_;
    }
  }
  // The same where each thread has kCount vectors; kPartial: or none. begin() returns when the
  // first poll may be issued; all addresses are computed before. kIssued: the first loads are under
  // way.
  template <int kCount, bool kPartial, bool kIssued, typename Begin>
  __device__ __forceinline__ void Receive(SpinWatchdog& watchdog, const Begin& begin) {
    constexpr int kNow = kCount < kInFlight ? kCount : kInFlight;
    const bool mine = !kPartial || remaining_ > 0;
    const uint8_t* from = from_;
    uint32_t to[kNow];
#pragma unroll
    for (int k = 0; k < kNow; ++k) to[k] = SharedAddress(to_ + k * to_step_), PinRegister(to[k]);
    begin();
#pragma unroll 1
    for (int done = kNow;; done += kNow) {
#pragma unroll
      for (int k = 0; k < kNow; ++k) {
        if (kIssued && done == kNow) break;
        w_[k] = mine ? Load16(from + k * from_step_) : make_uint4(1, 0, 1, 0);
      }
      if (Missing<kNow>()) Poll<kNow>(from, watchdog, mine);
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
  static constexpr int kInFlight = 4;

  // Whether the flag of any vector is empty.
  template <int kNow>
  __device__ __forceinline__ bool Missing() const {
    uint32_t least = ~0u;
#pragma unroll
    for (int k = 0; k < kNow; ++k) least = min(least, min(w_[k].x, w_[k].z));
    return least == 0;
  }
  template <int kNow>
  __device__ __forceinline__ void Poll(const uint8_t* from, SpinWatchdog& watchdog, bool mine) {
    int tries = 0;
    do {
#pragma unroll
      for (int k = 0; k < kNow; ++k)
        if (mine && !HasArrived(w_[k])) w_[k] = Load16(from + k * from_step_);
    } while (Missing<kNow>() && !watchdog.TimedOut(tries++));
  }

  __device__ __forceinline__ void ReceiveIssued(SpinWatchdog& watchdog) {
    for (int tries = 0;; ++tries) {
      bool missing = false;
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        if (HasArrived(w_[k])) continue;
        missing = true;
        w_[k] = Load16(from_ + k * from_step_);
      }
      if (!missing || watchdog.TimedOut(tries)) break;
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (remaining_ > k * kMmaThreads) to_[k * to_step_] = w_[k];
  }

  const uint8_t* from_;
  uint4* to_;
  uint32_t batch_bytes_;  // to the next row batch
  int from_step_, to_step_, remaining_;
  uint4 w_[kInFlight];
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_ACTIVATION_LOADER_CUH_
