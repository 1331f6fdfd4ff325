#ifndef KERNELS_CUDA_TMA_LINEAR_PLAN_H_
#define KERNELS_CUDA_TMA_LINEAR_PLAN_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/cuda/conv/conv.cuh"

// Which tiles and clusters the linear layers of some hundreds of tokens have. Depends on the shape
// alone.

namespace mjp::tma_linear {

constexpr int kTokens = 128;            // of a tile: 64 of each consumer warpgroup
constexpr int kSliceChannels = 64;      // of k
constexpr int kSliceBytes = 128;        // of a row of a slice
constexpr int kMostSlots = 6;           // of the ring
constexpr int kBarrierBytes = 16;       // of a slot
constexpr int kMostSplit = 4;           // parts of k
constexpr int kSumGap = 8;              // floats between two rows of sums in shared memory
constexpr int kMomentChannels = 32;     // of a row that have one mean and one sum of squares
constexpr int kSharedAlignment = 1024;  // of the ring, for the swizzle

// A tile is 128 tokens x `channels` out channels of one part of k, and a CTA's only one. A cluster
// has the parts of `sharers` tiles of the same tokens, which share them by multicast.
struct Plan {
  int channels = 96;
  int sharers = 1, split = 1;  // 1 or 2; 1, 2 or 4
  int token_tiles = 1, channel_tiles = 1;
  int slices = 1;               // of 64 in channels, all parts together
  int slots = 2;                // of the ring; each takes one slice of tokens and weights
  bool adds_to_stream = false;  // then a tile of the residual stream is in shared memory, too

  int Cluster() const { return sharers * split; }
  int Ctas() const { return token_tiles * channel_tiles * split; }
  int SlotBytes() const { return (kTokens + channels) * kSliceBytes; }
  // Of the barriers in shared memory: behind the ring, and behind the sums that follow it there.
  int BarrierOffset() const;
  // Of the tokens' means and scales, and of the stream's tile.
  int NormOffset() const { return BarrierOffset() + kMostSlots * kBarrierBytes; }
  int StreamOffset() const { return NormOffset() + kTokens * static_cast<int>(sizeof(float2)); }
  int StreamBytes() const {
    return adds_to_stream ? kTokens * channels * static_cast<int>(sizeof(float)) : 0;
  }
  size_t SharedBytes() const { return StreamOffset() + StreamBytes(); }
};

// Every plan that `args` can run by, best or not; empty where it is not a linear layer of 33 to
// 1152 tokens with in channels in multiples of 64, and out channels in multiples of 64 or 96.
// LaunchConv asks for multiples of 64 alone.
std::vector<Plan> Plans(const ConvArgs& args, bool adds_to_stream = false);

// The plan of the least MeasuredTime, or none.
std::optional<Plan> MakePlan(const ConvArgs& args, bool adds_to_stream = false);

// Microseconds on an H100, by measured times of a slice and of what a tile takes besides.
double MeasuredTime(const Plan& plan);

}  // namespace mjp::tma_linear

#endif  // KERNELS_CUDA_TMA_LINEAR_PLAN_H_
