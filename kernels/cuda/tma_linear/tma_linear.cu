// y = act(x W^T + bias + row_bias) (+ residual, ReLU) for some hundreds of tokens, with norms
// before and after it: bound by shared memory, from which each 64 tokens x 96 channels x 64 read 20
// KB, and by the launch.
//
// README.md has the data flow. A CTA makes one tile. One thread asks TMA for slices of tokens and
// weights, ahead of the products; two CTAs with the same tokens each copy half of them to both.

#include <limits>

#include "kernels/cuda/conv/wgmma_tile.cuh"
#include "kernels/cuda/primitives/gpu_traits.h"
#include "kernels/cuda/primitives/launch.cuh"
#include "kernels/cuda/primitives/tensor_map.h"
#include "kernels/cuda/primitives/tma.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"
#include "kernels/cuda/tma_linear/norm_epilogue.cuh"
#include "kernels/cuda/tma_linear/tma_linear.cuh"

namespace mjp::tma_linear {
namespace {

constexpr int kConsumerWarps = 8;  // two warpgroups
constexpr int kThreads = (kConsumerWarps + 1) * 32;

// What stands between this layer and its neighbours.
enum class Norms { kNone, kOfInput, kOfStream };

struct Args {
  WgmmaConvArgs conv;
  InputNorm norm;
  ResidualStream stream;
  Plan plan;
  int barriers, norms, stream_tile;  // offsets in shared memory
  CUtensorMap x, weights;
};

template <int BN>
struct Tile {
  static constexpr int kSlotBytes = (kTokens + BN) * kSliceBytes;
  static constexpr int kSumPitch = BN + kSumGap;  // the fragments' writes meet no bank twice
};

// A CTA's place: rank sharer * split + part of its cluster.
struct Place {
  int sharer, part;
  int first, last;  // k slices
  int token, channel;

  template <int BN>
  __device__ __forceinline__ static Place Of(const Plan& plan) {
    Place at;
    const int rank = static_cast<int>(blockIdx.z);
    at.sharer = rank / plan.split, at.part = rank % plan.split;
    at.first = plan.slices * at.part / plan.split;
    at.last = plan.slices * (at.part + 1) / plan.split;
    at.token = static_cast<int>(blockIdx.x) * kTokens;
    at.channel = (static_cast<int>(blockIdx.y) * plan.sharers + at.sharer) * BN;
    return at;
  }
  // The rank of the CTA with the same tokens and part.
  __device__ __forceinline__ int RankOf(const Plan& plan, int other) const {
    return other * plan.split + part;
  }
};

// A slot is full by one arrival and the bytes of its copies. It is empty once the warps of all CTAs
// that get this CTA's copies have read theirs.
__device__ __forceinline__ void InitBarriers(const Plan& plan, uint32_t barriers) {
  for (int i = 0; i < plan.slots; ++i) {
    InitBarrier(barriers + i * kBarrierBytes, 1);
    InitBarrier(barriers + i * kBarrierBytes + 8, kConsumerWarps * plan.sharers);
  }
  FenceBarrierInit();
}

// Asks L2 for the weights of an out channel that the ring does not take at once.
__device__ __forceinline__ void PrefetchWeights(const Args& p, const Place& at, int channel) {
  const int first = at.first + p.plan.slots;
  if (first >= at.last) return;
  PrefetchBytes(static_cast<const uint8_t*>(p.conv.a.weight) +
                    (static_cast<size_t>(channel) * p.plan.slices + first) * kSliceBytes,
                (at.last - first) * kSliceBytes);
}

// The producer's one thread. Weights of the first slots do not wait for the kernel before.
template <int BN>
__device__ __forceinline__ void Produce(const Args& p, const Place& at, uint32_t ring,
                                        RingSlot slot) {
  constexpr int kSlotBytes = Tile<BN>::kSlotBytes;
  const Plan& plan = p.plan;
  const auto copy_weights = [&](uint32_t to, int slice, uint32_t full) {
    ExpectBytes(full, kSlotBytes);
    CopyTensor(to + kTokens * kSliceBytes, p.weights, slice * kSliceChannels, at.channel, 0, 0,
               full);
  };
  const int rows = kTokens / plan.sharers, row0 = at.sharer * rows;
  const uint32_t sharers = plan.sharers == 1 ? 1u << at.RankOf(plan, 0)
                                             : 1u << at.RankOf(plan, 0) | 1u << at.RankOf(plan, 1);
  const int slices = at.last - at.first, early = min(slices, slot.slots);
#pragma unroll 1
  for (int i = 0; i < early; ++i)
    copy_weights(ring + i * kSlotBytes, at.first + i, slot.barriers + i * kBarrierBytes);
  WaitForPredecessor();
#pragma unroll 1
  for (int i = 0; i < slices; ++i) {
    const uint32_t to = ring + slot.slot * kSlotBytes;
    if (i >= early) {
      slot.AwaitEmpty();
      copy_weights(to, at.first + i, slot.Full());
    }
    CopyTensorToCtas(to + row0 * kSliceBytes, p.x, (at.first + i) * kSliceChannels, at.token + row0,
                     0, 0, slot.Full(), sharers);
    slot.Next();
  }
}

// Adds a slice: 64 tokens times all of the tile's channels.
template <Format F, int kSums>
__device__ __forceinline__ void MultiplySlice(float (&acc)[kSums], uint32_t tokens,
                                              uint32_t weights) {
  BeginWgmma();
#pragma unroll
  for (int step = 0; step < 4; ++step)
    Wgmma<F>(acc, WgmmaTile(tokens + step * 32), WgmmaTile(weights + step * 32));
  CommitWgmma();
}

// A warpgroup's products. Once those of a slice are done, each warp tells every CTA that copies to
// the slot, a lane for each; of the last slices nobody asks.
template <Format F, int BN>
__device__ __forceinline__ void Multiply(const Plan& plan, const Place& at, uint32_t ring,
                                         RingSlot slot, float (&acc)[BN / 2]) {
  const int lane = threadIdx.x % 32, group = threadIdx.x / kWarpgroup;
  const bool signals = lane < plan.sharers;
  const uint32_t empty = InCta(slot.barriers + 8, at.RankOf(plan, signals ? lane : 0));
  const int slices = at.last - at.first;
  int read = 0;  // the slot that products still read
  for (int i = 0; i < slices; ++i) {
    slot.AwaitFull();
    const uint32_t from = ring + slot.slot * Tile<BN>::kSlotBytes;
    MultiplySlice<F>(acc, from + group * 64 * kSliceBytes, from + kTokens * kSliceBytes);
    WaitWgmma<1>();
    if (signals && i > 0 && i - 1 + slot.slots < slices) ArriveInCta(empty + read * kBarrierBytes);
    read = slot.slot;
    slot.Next();
  }
  WaitWgmma<0>();
}

// The rows of its tile that this CTA ends.
__device__ __forceinline__ TileRows RowsOf(const Plan& plan, const Place& at) {
  const int slice = (kTokens + plan.split - 1) / plan.split;
  TileRows rows = {at.token, at.channel, at.part * slice};
  rows.end = min(rows.begin + slice, kTokens);
  rows.split = {at.part, at.sharer * plan.split, plan.split == 1};
  return rows;
}

// What the epilogue needs of the residual stream's rows, on its way before the products: moments by
// the consumers, the stream by all.
template <typename E, Norms kNorms>
__device__ __forceinline__ void LoadNormTerms(const Args& p, const TileRows& rows,
                                              const NormTerms& terms) {
  const ConvShape& s = p.conv.a.shape;
  const bool consumes = threadIdx.x < kConsumerWarps * 32;
  const auto load = [&](const float2* moments, int width, float epsilon, const auto& row_of) {
    const auto moments_of = [&](int row) {
      const int token = min(rows.token + row, s.batch - 1);
      return moments + static_cast<size_t>(row_of(token)) * (width / kMomentChannels);
    };
    LoadRowNorms(moments_of, width, epsilon, terms.norms);
  };
  if constexpr (kNorms == Norms::kOfInput) {
    if (consumes) load(p.norm.moments, s.in_c, p.norm.epsilon, [](int token) { return token; });
  } else {
    CopyStream<E>(p.stream, s, rows, terms.stream);
    if (consumes && p.stream.moments != nullptr)
      load(p.stream.moments, s.out_c, p.stream.epsilon,
           [&](int token) { return StreamRow(p.stream, token); });
  }
}

// The epilogue of this CTA, with a loop for each activation and one row at a time: a launch runs
// this code for a few rows, so that fetching it is what takes time.
template <typename E, Norms kNorms>
__device__ __forceinline__ void EndTile(const Args& p, const TileRows& rows, uint32_t sums,
                                        const NormTerms& terms, const ChannelTerms& channels) {
  if constexpr (kNorms == Norms::kOfStream)
    return EndStreamRows<E>(p.conv, p.stream, sums, rows, terms, channels);
  ForActivation(p.conv.a.activation, [&]<TokenActivation kActivation>() {
    if constexpr (kNorms == Norms::kOfInput)
      EndNormedRows<E, kActivation>(p.conv, sums, rows, terms, channels);
    else
      EndRows<E, 1>(p.conv, sums, rows.token, rows.channel, 0, rows.split,
                    [](float(&sum)[kSumVector]) { ActivateEach<kActivation, typename E::T>(sum); });
  });
}

// grid: (tiles of tokens, groups of channel tiles, CTAs of a cluster)
template <Format F, int BN, Norms kNorms>
__global__ void __launch_bounds__(kThreads, 1) TmaLinearKernel(const __grid_constant__ Args p) {
  if constexpr (!kHaveWgmma) return Trap();
  using Epilogue =
      WgmmaEpilogue<true, Storage<F>, kThreads, kTokens, BN, Tile<BN>::kSumPitch, kMostSplit>;
  extern __shared__ __align__(kSharedAlignment) uint8_t shared[];
  const uint32_t ring = SharedAddress(shared);
  const Plan& plan = p.plan;
  const Place at = Place::Of<BN>(plan);
  const TileRows rows = RowsOf(plan, at);
  const NormTerms terms = {reinterpret_cast<float2*>(shared + p.norms),
                           reinterpret_cast<float*>(shared + p.stream_tile)};
  const RingSlot slot = {ring + p.barriers, plan.slots};
  const int tid = static_cast<int>(threadIdx.x), warp = tid / 32;
  if (tid == 0) InitBarriers(plan, slot.barriers);
  __syncwarp();
  ArriveAtClusterBarrierRelaxed();
  if (tid == 0) PrefetchTensorMap(p.weights), PrefetchTensorMap(p.x);
  if (blockIdx.x == 0 && tid < BN) PrefetchWeights(p, at, at.channel + tid);
  ReleaseSuccessor();
  ChannelTerms channels;
  const int channel = at.channel + tid % Epilogue::kVectors * kSumVector;
  if constexpr (kNorms == Norms::kOfInput) channels.LoadOfInput(p.conv.a, p.norm, channel);
  if constexpr (kNorms == Norms::kOfStream) channels.LoadOfStream(p.conv.a, p.stream, channel);
  __syncwarp();
  WaitAtClusterBarrier();

  float acc[BN / 2] = {};
  if (warp == kConsumerWarps) {
    if (tid % 32 == 0) Produce<BN>(p, at, ring, slot);
    __syncwarp();
  }
  if constexpr (kNorms != Norms::kNone) {
    WaitForPredecessor();
    LoadNormTerms<Epilogue, kNorms>(p, rows, terms);
  }
  if (warp < kConsumerWarps) Multiply<F, BN>(plan, at, ring, slot, acc);
  WaitForPredecessor();
  __syncthreads();
  // all copies to this ring are there and read: now it holds the sums
  if (warp < kConsumerWarps)
    StoreSums<Tile<BN>::kSumPitch>(reinterpret_cast<float*>(shared), warp * 16 + tid % 32 / 4, acc);
  if (plan.split > 1) {
    ClusterBarrier();
  } else {
    __syncthreads();
    ArriveAtClusterBarrierRelaxed();
  }
  EndTile<Epilogue, kNorms>(p, rows, ring, terms, channels);
  // others may still read this CTA's sums, or copies of its own be on their way to them
  __syncwarp();
  if (plan.split > 1) return ClusterBarrier();
  WaitAtClusterBarrier();
}

template <Format F, int BN, Norms kNorms>
void LaunchKernel(const Args& p, cudaStream_t stream) {
  const auto kernel = TmaLinearKernel<F, BN, kNorms>;
  AllowShared(kernel, kMaxSharedBytesSm90, "shared memory of the linear layer by TMA");
  const Plan& plan = p.plan;
  LaunchShape shape;
  shape.grid = dim3(plan.token_tiles, plan.channel_tiles / plan.sharers, plan.Cluster());
  shape.block = dim3(kThreads);
  shape.shared_bytes = plan.SharedBytes();
  shape.cluster_z = plan.Cluster();
  mjp::Launch(kernel, shape, stream, "linear layer by TMA", p);
}

template <Format F, int BN>
void LaunchTile(const Args& p, cudaStream_t stream) {
  if (p.stream.x != nullptr) return LaunchKernel<F, BN, Norms::kOfStream>(p, stream);
  if (p.norm.moments != nullptr) return LaunchKernel<F, BN, Norms::kOfInput>(p, stream);
  LaunchKernel<F, BN, Norms::kNone>(p, stream);
}

template <Format F>
void LaunchFormat(const Args& p, cudaStream_t stream) {
  if (p.plan.channels == 64) return LaunchTile<F, 64>(p, stream);
  if (p.plan.channels == 96) return LaunchTile<F, 96>(p, stream);
  LaunchTile<F, 128>(p, stream);
}

// A matrix of so many rows, copied 64 columns x `copy_rows` at a time.
TensorBlocks MatrixBlocks(const void* data, int columns, int rows, int copy_rows) {
  return {data,
          {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), 1, 1},
          {kSliceChannels, static_cast<uint32_t>(copy_rows), 1, 1}};
}

}  // namespace

bool Runs(Format format) { return FormatBytes(format) == 2 && GpuTraits::Current().Wgmma(); }

double Time(Format format, const ConvArgs& args) {
  const std::optional<Plan> plan = Runs(format) ? MakePlan(args) : std::nullopt;
  return plan ? MeasuredTime(*plan) : std::numeric_limits<double>::infinity();
}

void Launch(Format format, const ConvArgs& args, cudaStream_t stream) {
  Launch(format, LayerArgs{args, {}, {}}, stream);
}

void Launch(Format format, const LayerArgs& args, cudaStream_t stream) {
  LaunchPlan(format, args, *MakePlan(args.conv, args.stream.x != nullptr), stream);
}

void LaunchPlan(Format format, const LayerArgs& args, const Plan& plan, cudaStream_t stream) {
  const ConvShape& s = args.conv.shape;
  Args p = {{args.conv, plan.slices, s.out_c, plan.split},
            args.norm,
            args.stream,
            plan,
            plan.BarrierOffset(),
            plan.NormOffset(),
            plan.StreamOffset(),
            {},
            {}};
  p.x = MakeTensorMap(format, MatrixBlocks(args.conv.x, s.in_c, s.batch, kTokens / plan.sharers));
  p.weights = MakeTensorMap(format, MatrixBlocks(args.conv.weight, s.in_c, s.out_c, plan.channels));
  format == Format::kFp16 ? LaunchFormat<Format::kFp16>(p, stream)
                          : LaunchFormat<Format::kBf16>(p, stream);
}

}  // namespace mjp::tma_linear
