#ifndef KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// A CTA's accumulators on their way to the mailboxes: each of the two MMA warpgroups, which have
// one half of the K slice each, puts its own into shared memory, [column][out channel], in the
// format in which partial sums travel; the halves are added when they are sent.

namespace mjp::megakernel {

// Accumulators in shared memory. T: storage type of activations.
template <typename T>
struct AccumulatorLayout {
  // bytes between columns: eight of them fall into all banks
  static constexpr int kPitch = kPartialSumsAreF16<T> ? kTileChannels * sizeof(__half) + 16
                                                      : kAccumulatorPitch * sizeof(float);
  // Bytes of a warpgroup's part.
  MJP_HOST_DEVICE static constexpr int Part(int columns) {
    return (columns < 16 ? 16 : columns) * kPitch;
  }
};

// Bytes of the accumulators of a GEMM tile, both warpgroups' parts.
inline size_t AccumulatorBytes(int columns, Format format) {
  return size_t{2} * (format == Format::kFp16 ? AccumulatorLayout<__half>::Part(columns)
                                              : AccumulatorLayout<__nv_bfloat16>::Part(columns));
}

__device__ __forceinline__ uint32_t RoundedPair(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return reinterpret_cast<const uint32_t&>(pair);
}

// Puts a warp's tiles of 16 out channels from `m` on x 8 columns, as fp16: a pair of tiles is
// four matrices, [half of the channels][tile], of which eight lanes each have the rows' addresses.
template <int NT>
__device__ __forceinline__ void PutAccumulatorsF16(const float (&acc)[NT][4], uint32_t shared,
                                                   int pitch, int m, int lane) {
  const int tile = lane >> 4, half = lane >> 3 & 1;
  const uint32_t at = shared + (tile * 8 + (lane & 7)) * pitch + (m + half * 8) * 2;
#pragma unroll
  for (int t = 0; t < NT; t += 2) {
    const uint32_t low = RoundedPair(acc[t][0], acc[t][1]),
                   high = RoundedPair(acc[t][2], acc[t][3]);
    if constexpr (NT == 1) {
      StoreMatrix2Transposed(at, low, high);
    } else {
      StoreMatrix4Transposed(at + t * 8 * pitch, low, high,
                             RoundedPair(acc[t + 1][0], acc[t + 1][1]),
                             RoundedPair(acc[t + 1][2], acc[t + 1][3]));
    }
  }
}

// Puts a warp's accumulators, of 8 NT columns, into its warpgroup's part.
template <typename T, int NT>
__device__ __forceinline__ void PutWarpgroupPart(const float (&acc)[NT][4], uint8_t* accumulators,
                                                 int thread) {
  using Layout = AccumulatorLayout<T>;
  const int m = FirstChannelOfWarp(thread), lane = thread & 31;
  uint8_t* part = accumulators + WarpgroupOf(thread) * Layout::Part(NT * 8);
  if constexpr (kPartialSumsAreF16<T>) {
    PutAccumulatorsF16<NT>(acc, SharedAddress(part), Layout::kPitch, m, lane);
  } else {
    PutAccumulators<NT>(acc, reinterpret_cast<float*>(part), kAccumulatorPitch, m, lane);
  }
}

// Adds the two warpgroups' accumulators and sends them to the mailboxes of the tiles' owners. Made
// before the input is polled.
template <typename T>
struct PartialSumSender {
  using Sums = PartialSums<T>;
  using Layout = AccumulatorLayout<T>;
  using Vector = typename Sums::Vector;

  uint8_t* mailbox;  // where the thread's first four go
  int from, part;    // bytes: to them from the accumulators' begin; between the warpgroups' parts
  int step;          // bytes from a round of 16 columns to the next
  int rounds;        // or fewer columns
  uint32_t epoch;

  // row_slot(row): the row slot of the tile's row `row`, from its first one on.
  template <typename RowSlot>
  __device__ __forceinline__ PartialSumSender(const LayerDescriptor& desc, uint32_t pass,
                                              int thread, const RowSlot& row_slot) {
    constexpr int kValueBytes = sizeof(Vector) / 4;
    const int n = thread / 16, m = thread % 16 * 4, rows_log2 = desc.rows_log2;
    const int channel = desc.out + m, in_group = channel & ((1 << desc.group_channels_log2) - 1);
    from = n * Layout::kPitch + m * kValueBytes, part = Layout::Part(1 << desc.columns_log2);
    rounds = n >> desc.columns_log2 > 0 ? 0 : max(1, 1 << desc.columns_log2 >> 4);
    const MailboxSlot slot = SlotOf(desc.ring, pass, 0);
    epoch = slot.epoch;
    PinRegister(epoch);
    mailbox = desc.send + slot.bytes + (channel >> desc.group_channels_log2) * desc.send_group +
              in_group * kValueBytes + row_slot(n & ((1 << rows_log2) - 1)) * desc.send_row +
              (n >> rows_log2) * desc.send_position;
    step = (16 >> rows_log2) * desc.send_position;
  }
  __device__ __forceinline__ PartialSumSender(const LayerDescriptor& desc, uint32_t pass,
                                              int thread)
      : PartialSumSender(desc, pass, thread, [](int row) { return row; }) {}
  // Goes on to the shortcut's mailbox.
  __device__ __forceinline__ void GoToShortcut(const LayerDescriptor& desc, uint32_t pass,
                                               int batch) {
    const MailboxSlot slot = SlotOf(desc.shortcut_ring, pass, batch);
    mailbox += desc.shortcut_send + slot.bytes - (desc.send + SlotOf(desc.ring, pass, batch).bytes);
    epoch = slot.epoch;
  }
  // Goes on to the next row batch.
  __device__ __forceinline__ void NextBatch(const LayerDescriptor& desc) {
    mailbox += 2 * desc.ring.buffer_bytes;
  }
  __device__ __forceinline__ void Send(const uint8_t* accumulators) const {
    const uint8_t* at = accumulators + from;
#pragma unroll
    for (int round = 0; round < 4; ++round) {
      if (round >= rounds) break;
      // read as vectors: through references each value would be loaded by itself
      const Vector mine = *reinterpret_cast<const Vector*>(at + round * 16 * Layout::kPitch);
      const Vector others =
          *reinterpret_cast<const Vector*>(at + round * 16 * Layout::kPitch + part);
      Sums::StoreSum(mailbox + round * step, mine, others, epoch);
    }
  }
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_
