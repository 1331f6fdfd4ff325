#ifndef KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"

// The sums of a block's products on their way to the blocks whose items they are: each of two
// warpgroups puts its own into shared memory, [position][out channel], in the format in which they
// travel; they are added when they are sent.

namespace mjp {

// Where they stand. T: as numbers are stored.
template <typename T>
struct WideSumsPlace {
  // bytes from a position to the next, so that eight of them fall into all banks
  static constexpr int kPitch =
      kSumsAre16<T> ? kWideTile * sizeof(__half) + 16 : kWideSumsPitch * sizeof(float);
  // Bytes of a warpgroup's part.
  MJP_HOST_DEVICE static constexpr int Part(int positions) {
    return (positions < 16 ? 16 : positions) * kPitch;
  }
};

__device__ __forceinline__ uint32_t RoundedPair(float first, float second) {
  const __half2 pair = __floats2half2_rn(first, second);
  return reinterpret_cast<const uint32_t&>(pair);
}

// Puts a warp's tiles of 16 out channels from `m` on x 8 positions, as fp16: a pair of tiles is
// four matrices, [half of the channels][tile], of which eight lanes each have the rows' addresses.
template <int NT>
__device__ __forceinline__ void PutSums16(const float (&acc)[NT][4], uint32_t shared, int pitch,
                                          int m, int lane) {
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

// Puts the sums of a thread's warp, of 8 NT positions, into its warpgroup's part.
template <typename T, int NT>
__device__ __forceinline__ void PutPart(const float (&acc)[NT][4], uint8_t* sums, int thread) {
  using Place = WideSumsPlace<T>;
  const int m = thread >> 1 & 48, lane = thread & 31;
  uint8_t* part = sums + (thread >> 7) * Place::Part(NT * 8);
  if constexpr (kSumsAre16<T>) {
    PutSums16<NT>(acc, SharedAddress(part), Place::kPitch, m, lane);
  } else {
    PutSums<NT>(acc, reinterpret_cast<float*>(part), kWideSumsPitch, m, lane);
  }
}

// Adds the two groups' sums and sends them to the blocks whose items they are. Made before the
// input is waited for.
template <typename T>
struct WideSender {
  using Sums = WideSums<T>;
  using Place = WideSumsPlace<T>;
  using Vector = typename Sums::Vector;

  uint8_t* box;    // of a thread's first four
  int from, part;  // bytes: to there from where the sums stand; the groups' are `part` apart
  int step;        // bytes from a round of 16 positions to the next
  int rounds;      // or fewer positions
  uint32_t parity;

  __device__ __forceinline__ WideSender(const WideRoute& r, uint32_t pass, int thread) {
    constexpr int kNumber = sizeof(Vector) / 4;
    const int n = thread / 16, m = thread % 16 * 4, rows_log2 = r.rows_log2;
    const int channel = r.out + m, in_group = channel & ((1 << r.item_log2) - 1);
    from = n * Place::kPitch + m * kNumber, part = Place::Part(1 << r.positions_log2);
    rounds = n >> r.positions_log2 > 0 ? 0 : max(1, 1 << r.positions_log2 >> 4);
    const WideTurn turn = TurnOf(r.turns, pass, 0);
    parity = turn.parity;
    WorkOut(parity);
    box = r.to + turn.bytes + (channel >> r.item_log2) * r.to_group + in_group * kNumber +
          (n & ((1 << rows_log2) - 1)) * r.to_row + (n >> rows_log2) * r.to_position;
    step = (16 >> rows_log2) * r.to_position;
  }
  // Goes on to the sums of the 1x1.
  __device__ __forceinline__ void GoBeside(const WideRoute& r, uint32_t pass, int wave) {
    const WideTurn turn = TurnOf(r.turns_beside, pass, wave);
    box += r.to_beside + turn.bytes - (r.to + TurnOf(r.turns, pass, wave).bytes);
    parity = turn.parity;
  }
  // Goes on to the next wave.
  __device__ __forceinline__ void NextWave(const WideRoute& r) { box += 2 * r.turns.other; }
  __device__ __forceinline__ void Send(const uint8_t* sums) const {
    const uint8_t* at = sums + from;
#pragma unroll
    for (int round = 0; round < 4; ++round) {
      if (round >= rounds) break;
      // read whole: through references each number would be by itself
      const Vector mine = *reinterpret_cast<const Vector*>(at + round * 16 * Place::kPitch);
      const Vector others =
          *reinterpret_cast<const Vector*>(at + round * 16 * Place::kPitch + part);
      Sums::StoreSum(box + round * step, mine, others, parity);
    }
  }
};

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_PARTIAL_SUMS_CUH_
