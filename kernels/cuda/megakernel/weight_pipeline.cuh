#ifndef KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_

#include "kernels/cuda/megakernel/evict_first.cuh"
#include "kernels/cuda/megakernel/layer_descriptor.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// The weight pipeline: device memory -> each MMA warp's shared memory (bulk copies) -> its
// registers.

namespace mjp::megakernel {

__device__ __forceinline__ WeightTile MakeWeightTile(const Layer& layer, const OutputTile& tile) {
  const NormConvShape& s = layer.shape;
  const GemmTile gemm = GemmTileOf(layer, tile);
  if (s.in_c == 0 || !gemm.has_work) return {};
  const int out = gemm.phase * s.out_c +
                  ((gemm.group_block << layer.groups_log2) << layer.group_channels_log2) + gemm.out;
  const int k_blocks = layer.cta_local ? 1 : layer.k_slice / kBlockK;
  const int bytes = kKSteps * (s.taps + s.shortcut) * kFragmentBytes;
  const size_t first = layer.cta_local
                           ? out / kLocalTileChannels
                           : static_cast<size_t>(out / kTileChannels) * (s.in_c / kBlockK) +
                                 static_cast<size_t>(gemm.k_slice) * k_blocks;
  return {static_cast<const uint8_t*>(layer.weight) + first * kMmaWarps * bytes, k_blocks, bytes};
}

// The weights of the next layer after `layer_index` in which the CTA has a GEMM tile, cyclic.
__device__ __forceinline__ WeightTile NextWeightTile(const WeightTile* tiles, int count,
                                                     int layer_index) {
  do layer_index = layer_index + 1 < count ? layer_index + 1 : 0;
  while (tiles[layer_index].k_blocks == 0);
  return tiles[layer_index];
}

// One MMA warp's buffer, at the start of shared memory: the K block that it multiplies next is on
// its way there while it multiplies the one before from registers, across layers and passes. The
// state of the pipeline stands here as well, since the lane that issues the copies alone needs it;
// but for the mbarrier's phase.
struct alignas(128) WeightBuffer {
  uint8_t weights[kWarpWeightBytes];
  const uint8_t* from;      // of the half that is copied next
  uint32_t half;            // its bytes
  int left;                 // K blocks of the layer after it
  const WeightTile* tiles;  // of the layers
  uint64_t arrived;         // mbarrier
  int layer_count, layer_index;
};
struct WeightPipeline {
  int thread;
  uint32_t phase = 0;

  __device__ __forceinline__ WeightBuffer& Buffer() const {
    extern __shared__ __align__(128) uint8_t shared[];
    return reinterpret_cast<WeightBuffer*>(shared)[thread / 32];
  }
  // This lane's part of fragment `i`.
  __device__ __forceinline__ uint32_t Fragment(int i) const {
    return SharedAddress(Buffer().weights) + thread % 32 * 16 + i * kFragmentBytes;
  }
  __device__ __forceinline__ void Begin(const WeightTile* tiles, int layer_count) {
    WeightBuffer& buffer = Buffer();
    if (thread % 32 == 0) {
      InitBarrier(SharedAddress(&buffer.arrived), 1);
      buffer.tiles = tiles, buffer.layer_count = layer_count, buffer.layer_index = -1,
      buffer.left = 0;
    }
    FenceAsyncProxy();
    PrefetchFirstHalf();
    PrefetchSecondHalf();
  }
  // Waits for the prefetched K block.
  __device__ __forceinline__ void Wait() {
    const uint32_t arrived = SharedAddress(&Buffer().arrived);
    AwaitBarrier(arrived, phase);
    phase ^= 1;
  }
  // Issues the copy of half of the weights of a layer of one K block, once all lanes have read what
  // was there.
  __device__ __forceinline__ void PrefetchFirstHalf(const WeightTile& next) const {
    __syncwarp();
    if (!OneLane()) return;
    WeightBuffer& buffer = Buffer();
    const uint32_t bytes = next.bytes;
    ExpectBytes(SharedAddress(&buffer.arrived), bytes);
    Copy(buffer, next.weight + thread / 32 * bytes, 0, bytes / 2);
  }
  // Issues the other half: in two parts, what CTAs exchange meanwhile gets through sooner.
  __device__ __forceinline__ void PrefetchSecondHalf(const WeightTile& next) const {
    if (!OneLane()) return;
    const uint32_t bytes = next.bytes, half = bytes / 2;
    Copy(Buffer(), next.weight + thread / 32 * bytes + half, half, half);
  }
  // The same of layers that may have several K blocks, one after the other.
  __device__ __forceinline__ void PrefetchFirstHalf() const {
    __syncwarp();
    if (!OneLane()) return;
    WeightBuffer& buffer = Buffer();
    const uint8_t* from = buffer.from + (kMmaWarps * 2 - 1) * buffer.half;
    int left = buffer.left, layer_index = buffer.layer_index;
    uint32_t half = buffer.half;
    while (left == 0) {
      if (++layer_index == buffer.layer_count) layer_index = 0;
      const WeightTile& tile = buffer.tiles[layer_index];
      left = tile.k_blocks, half = tile.bytes / 2;
      from = tile.weight + thread / 32 * tile.bytes;
    }
    ExpectBytes(SharedAddress(&buffer.arrived), 2 * half);
    Copy(buffer, from, 0, half);
    buffer.from = from + half, buffer.half = half, buffer.left = left - 1,
    buffer.layer_index = layer_index;
  }
  __device__ __forceinline__ void PrefetchSecondHalf() const {
    if (!OneLane()) return;
    WeightBuffer& buffer = Buffer();
    Copy(buffer, buffer.from, buffer.half, buffer.half);
  }

 private:
  // Evict-first: weights must not push the exchange buffers out of L2.
  __device__ __forceinline__ static void Copy(WeightBuffer& buffer, const uint8_t* from,
                                              uint32_t at, uint32_t bytes) {
    CopyBulk(SharedAddress(buffer.weights) + at, from, bytes, SharedAddress(&buffer.arrived),
             EvictFirstPolicy());
  }
};

// An instruction that needs `loaded` and that no compiler leaves out.
__device__ __forceinline__ void WaitForLoaded(uint32_t loaded) {
  if (loaded == 0x7fff7fff) __nanosleep(0);
}

// A warp's weights of a K block in registers: of its 16 out channels, and of half of the in
// channels.
struct WeightFragments {
  uint32_t main[kKSteps * 5][4];  // with fewer taps the last ones are not used

  __device__ __forceinline__ void Load(WeightPipeline& pipeline) {
    pipeline.Wait();
#pragma unroll
    for (int i = 0; i < kKSteps * 5; ++i) LoadFragment(main[i], pipeline.Fragment(i));
  }
  // Once they are loaded, prefetches what comes next in their place; next: as of PrefetchFirstHalf.
  template <typename... Next>
  __device__ __forceinline__ void PrefetchNext(const WeightPipeline& pipeline,
                                               const Next&... next) const {
    uint32_t loaded = 0;
#pragma unroll
    for (const auto& fragment : main) loaded |= fragment[3];
    WaitForLoaded(loaded);
    pipeline.PrefetchFirstHalf(next...);
  }
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_
