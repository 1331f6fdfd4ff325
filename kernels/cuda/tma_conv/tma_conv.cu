// y[n][m] = bias[m] + sum over taps and channels of x w: 3x3 convolutions of large maps, and linear
// layers of thousands of tokens, bound by the tensor cores.
//
// README.md has the data flow. Blocks stay, one on each multiprocessor, and walk the tiles; one
// thread asks TMA for patches, another for weights, and two warpgroups multiply. For a 3x3 tile of
// 128 x 252 values, 64 channels: 43 KB of pixels and 147 KB of weights for 9,216 cycles of
// products.

#include <algorithm>
#include <limits>

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/tensor_map.h"
#include "kernels/cuda/tma_conv/tile.cuh"
#include "kernels/cuda/tma_conv/tma_conv.cuh"

namespace mjp::tma_conv {
namespace {

constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;

// Where things lie in shared memory.
struct Layout {
  uint32_t weights, patches, staging, patch_barriers, weight_barriers;

  __device__ __forceinline__ Layout(const Plan& plan, uint32_t start) {
    weights = (start + kAlignment - 1) / kAlignment * kAlignment;
    patches = weights + plan.weight_slots * plan.channels * kSliceBytes;
    staging = patches + plan.patch_slots * plan.slot_rows * kSliceBytes;
    patch_barriers = staging + kStagingBytes;
    weight_barriers = patch_barriers + kMostSlots * kBarrierBytes;
  }
};

// A block's share of the work: the same out channels of one tile, or of two.
template <int kChannels>
struct Unit {
  static constexpr bool kTwoTiles = kChannels == kSliceChannels;
  int m0, tile;
  __device__ __forceinline__ Unit(int index, int channel_tiles) {
    m0 = index % channel_tiles * kChannels;
    tile = index / channel_tiles * (kTwoTiles ? kWarpgroups : 1);
  }
  __device__ __forceinline__ int TileOf(int group) const { return tile + (kTwoTiles ? group : 0); }
  __device__ __forceinline__ int ChannelsOf(int group) const {
    return m0 + (kTwoTiles ? 0 : group * kSliceChannels);
  }
};

template <int kChannels>
__device__ __forceinline__ void ProducePatches(const Args& p, const Layout& at, int units) {
  const Plan& plan = p.plan;
  const ConvShape& s = p.a.shape;
  RingSlot slot = {at.patch_barriers, plan.patch_slots};
  const auto copy = [&](const CUtensorMap& map, int rows, int c, int x, int y, int n) {
    slot.AwaitEmpty();
    ExpectBytes(slot.Full(), rows * kSliceBytes);
    CopyTensor(at.patches + slot.slot * plan.slot_rows * kSliceBytes, map, c, x, y, n, slot.Full());
    slot.Next();
  };
  for (int i = blockIdx.x; i < units; i += gridDim.x) {
    const Unit<kChannels> unit(i, s.out_c / kChannels);
    for (int slice = 0; slice < plan.slices; ++slice) {
      for (int g = 0; g < (unit.kTwoTiles ? kWarpgroups : 1); ++g) {
        const TilePlace place = PlaceOf(plan, unit.TileOf(g));
        copy(p.x, plan.patch_rows, slice * kSliceChannels, place.x - s.pad_w, place.y - s.pad_h,
             place.map);
      }
    }
    for (int g = 0; p.a.residual != nullptr && g < kWarpgroups; ++g) {
      const TilePlace place = PlaceOf(plan, unit.TileOf(g));
      copy(p.residual, plan.rows * plan.pitch, unit.ChannelsOf(g), place.x, place.y, place.map);
    }
  }
}

template <int kChannels>
__device__ __forceinline__ void ProduceWeights(const Args& p, const Layout& at, int units) {
  const Plan& plan = p.plan;
  const ConvShape& s = p.a.shape;
  RingSlot slot = {at.weight_barriers, plan.weight_slots};
  for (int i = blockIdx.x; i < units; i += gridDim.x) {
    const Unit<kChannels> unit(i, s.out_c / kChannels);
    for (int slice = 0; slice < plan.slices; ++slice) {
      for (int tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
        slot.AwaitEmpty();
        ExpectBytes(slot.Full(), kChannels * kSliceBytes);
        CopyTensor(at.weights + slot.slot * kChannels * kSliceBytes, p.weights,
                   tap * s.in_c + slice * kSliceChannels, unit.m0, 0, 0, slot.Full());
        slot.Next();
      }
    }
  }
}

template <Format F, int kChannels>
__device__ __forceinline__ void Consume(const Args& p, const Layout& at, int units) {
  const Plan& plan = p.plan;
  const int group = threadIdx.x / kWarpgroup, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t weight_base =
      at.weights + (Unit<kChannels>::kTwoTiles ? 0 : group * kSliceChannels * kSliceBytes);
  RingSlot patches = {at.patch_barriers, plan.patch_slots};
  RingSlot weights = {at.weight_barriers, plan.weight_slots};
  constexpr int kApart = Unit<kChannels>::kTwoTiles ? kWarpgroups : 1;
  if (kApart == kWarpgroups && group == 1) patches.Next();
  for (int i = blockIdx.x; i < units; i += gridDim.x) {
    const Unit<kChannels> unit(i, p.a.shape.out_c / kChannels);
    float sums[kPositions / 2];
    MultiplyTile<F>(p.a.shape, plan, sums, patches, weights, at.patches, weight_base, kApart);
    const int m0 = unit.ChannelsOf(group) + warp % kWarpsOfTile * 16;
    WarpEpilogue<F> epilogue = {p, PlaceOf(plan, unit.TileOf(group)), m0,
                                at.staging + warp * 2 * kStagedBytes, 0};
    epilogue.terms.Load(p.a, m0 + lane / 4, epilogue.place.x + 2 * (lane % 4));
    if (p.a.residual == nullptr) {
      epilogue.Run(sums);
      continue;
    }
    // a slot for each warpgroup; where both read all slots, both give both back
    if (kApart == 1 && group == 1) {
      patches.AwaitFull();
      if (lane == 0) Arrive(patches.Empty());
      patches.Next();
    }
    patches.AwaitFull();
    epilogue.residual = at.patches + patches.slot * plan.slot_rows * kSliceBytes;
    epilogue.Run(sums);
    __syncwarp();
    if (lane == 0) Arrive(patches.Empty());
    for (int j = 0; j < kApart; ++j) patches.Next();
    if (kApart == 1 && group == 0) {
      patches.AwaitFull();
      if (lane == 0) Arrive(patches.Empty());
      patches.Next();
    }
  }
}

template <Format F, int kChannels>
__global__ void __launch_bounds__(kThreads, 1) TmaConvKernel(const __grid_constant__ Args p) {
  if constexpr (!kHaveWgmma) return Trap();
  extern __shared__ uint8_t shared[];
  const Layout at(p.plan, SharedAddress(shared));
  const int units = p.units;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    constexpr int kReaders = kChannels == kSliceChannels ? kWarpsOfTile : 2 * kWarpsOfTile;
    for (int i = 0; i < kMostSlots; ++i) {
      InitBarrier(at.patch_barriers + i * kBarrierBytes, 1);
      InitBarrier(at.patch_barriers + i * kBarrierBytes + 8, kReaders);
      InitBarrier(at.weight_barriers + i * kBarrierBytes, 1);
      InitBarrier(at.weight_barriers + i * kBarrierBytes + 8, kWarpgroups * kWarpsOfTile);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  if (warp >= kWarpgroups * kWarpsOfTile) {
    SetRegisters<false, kProducerRegisters>();
    const bool first = threadIdx.x % 32 == 0;
    if (warp == kWarpgroups * kWarpsOfTile + 1 && first) ProduceWeights<kChannels>(p, at, units);
    ReleaseSuccessor();
    WaitForPredecessor();
    if (warp == kWarpgroups * kWarpsOfTile && first) ProducePatches<kChannels>(p, at, units);
  } else {
    SetRegisters<true, kConsumerRegisters>();
    ReleaseSuccessor();
    WaitForPredecessor();
    Consume<F, kChannels>(p, at, units);
  }
}

template <Format F, int kChannels>
void LaunchKernel(const Args& p, cudaStream_t stream) {
  const auto kernel = TmaConvKernel<F, kChannels>;
  AllowShared(kernel, kMaxSharedBytesSm90, "shared memory of the convolution by TMA");
  LaunchShape shape;
  shape.grid = dim3(std::min(p.units, GpuTraits::Current().multiprocessors));
  shape.block = dim3(kThreads);
  shape.shared_bytes = p.plan.SharedBytes();
  mjp::Launch(kernel, shape, stream, "convolution by TMA", p);
}

template <Format F>
void LaunchChannels(const Args& p, cudaStream_t stream) {
  p.plan.channels == kSliceChannels ? LaunchKernel<F, kSliceChannels>(p, stream)
                                    : LaunchKernel<F, 2 * kSliceChannels>(p, stream);
}

// The tensor as maps of the plan's positions with so many channels.
TensorBlocks MapBlocks(const void* data, int channels, uint64_t height, uint64_t width, int maps,
                       int rows, int pitch) {
  return {data,
          {static_cast<uint64_t>(channels), width, height, static_cast<uint64_t>(maps)},
          {kSliceChannels, static_cast<uint32_t>(pitch), static_cast<uint32_t>(rows), 1}};
}

}  // namespace

double Time(Format format, const ConvArgs& args) {
  const bool activation =
      args.activation == TokenActivation::kNone || args.activation == TokenActivation::kRelu;
  const bool runs =
      FormatBytes(format) == 2 && !args.y_fp32 && activation && GpuTraits::Current().Wgmma();
  const std::optional<Plan> plan = runs ? MakePlan(args) : std::nullopt;
  return plan ? MeasuredTime(*plan, args.shape) : std::numeric_limits<double>::infinity();
}

void Launch(Format format, const ConvArgs& args, cudaStream_t stream) {
  Args p = {args, *MakePlan(args), 0, {}, {}, {}};
  p.units = p.plan.Units(args.shape.out_c);
  const ConvShape& s = args.shape;
  const Plan& plan = p.plan;
  // before the border is cut off, as many as after it but for the padding
  const int height = plan.height - 2 * s.pad_h + s.kernel_h - 1;
  const int width = plan.map_width - 2 * s.pad_w + s.kernel_w - 1;
  p.x = MakeTensorMap(format, MapBlocks(args.x, s.in_c, height, width, plan.maps,
                                        plan.rows + s.kernel_h - 1, plan.pitch));
  const uint64_t padded_k = PackedConvBytes(format, s) / s.out_c / FormatBytes(format);
  p.weights = MakeTensorMap(format, {args.weight,
                                     {padded_k, static_cast<uint64_t>(s.out_c), 1, 1},
                                     {kSliceChannels, static_cast<uint32_t>(plan.channels), 1, 1}});
  if (args.residual != nullptr)
    p.residual = MakeTensorMap(format, MapBlocks(args.residual, s.out_c, plan.height,
                                                 plan.map_width, plan.maps, plan.rows, plan.pitch));
  format == Format::kFp16 ? LaunchChannels<Format::kFp16>(p, stream)
                          : LaunchChannels<Format::kBf16>(p, stream);
}

}  // namespace mjp::tma_conv
