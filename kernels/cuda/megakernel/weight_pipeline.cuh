#ifndef KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_
#define KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_

#include "kernels/cuda/megakernel/layer_descriptor.cuh"
#include "kernels/cuda/megakernel/reader_epilogue/layer.cuh"
#include "kernels/cuda/norm_conv/warp_mma.cuh"

// The weights of the wide chain on their way: from device memory to each warp's shared memory, and
// from there to its registers.

namespace mjp {

__device__ __forceinline__ WideTile MakeWideTile(const WideStage& st, const WideItem& item) {
  const FusedConvShape& s = st.shape;
  const WideTeam team = TeamOf(st, item);
  if (s.in_c == 0 || !team.multiplies) return {};
  const int out = team.phase * s.out_c + ((team.tile << st.groups_log2) << st.item_log2) + team.out;
  const int fillings = st.whole ? 1 : st.share / kWideFilling;
  const int bytes = kWidePieces * (s.taps + s.residual) * kFragmentBytes;
  const size_t first = st.whole ? out / kWholeTile
                                : static_cast<size_t>(out / kWideTile) * (s.in_c / kWideFilling) +
                                      static_cast<size_t>(team.split) * fillings;
  return {static_cast<const uint8_t*>(st.weight) + first * kChainWarps * bytes, fillings, bytes};
}

// The weights of the stage that a block multiplies behind `stage`, round and round.
__device__ __forceinline__ WideTile NextTile(const WideTile* tiles, int count, int stage) {
  do stage = stage + 1 < count ? stage + 1 : 0;
  while (tiles[stage].fillings == 0);
  return tiles[stage];
}

// A warp's weights of all stages, round and round: what it multiplies with next is on its way to
// shared memory, by the bulk copy engine. All but the barrier's parity is there too, since the
// asking lane alone needs it. One for each warp that multiplies, at the start of shared memory.
struct alignas(128) WideBuffer {
  uint8_t weights[kWideWarpBytes];
  const uint8_t* from;    // of the half that is asked for next
  uint32_t half;          // bytes of it
  int left;               // fillings of the stage behind it
  const WideTile* tiles;  // of the stages
  uint64_t arrived;       // a barrier
  int stage_count, stage;
};
struct WideStream {
  int thread;
  uint32_t parity = 0;

  __device__ __forceinline__ WideBuffer& Mine() const {
    extern __shared__ __align__(128) uint8_t shared[];
    return reinterpret_cast<WideBuffer*>(shared)[thread / 32];
  }
  // This lane's part of fragment `i`.
  __device__ __forceinline__ uint32_t Fragment(int i) const {
    return SharedAddress(Mine().weights) + thread % 32 * 16 + i * kFragmentBytes;
  }
  __device__ __forceinline__ void Begin(const WideTile* tiles, int stage_count) {
    WideBuffer& m = Mine();
    if (thread % 32 == 0) {
      InitBarrier(SharedAddress(&m.arrived), 1);
      m.tiles = tiles, m.stage_count = stage_count, m.stage = -1, m.left = 0;
    }
    FenceForWgmma();
    Ask();
    AskRest();
  }
  // Waits for what was asked for.
  __device__ __forceinline__ void Wait() {
    const uint32_t arrived = SharedAddress(&Mine().arrived);
    while (!BarrierPassed(arrived, parity)) {
    }
    parity ^= 1;
  }
  // Expects the weights of a stage of one filling, and asks for half of them, once all lanes have
  // read what was there.
  __device__ __forceinline__ void Ask(const WideTile& next) const {
    __syncwarp();
    if (!OneLane()) return;
    WideBuffer& m = Mine();
    const uint32_t bytes = next.bytes;
    ExpectBytes(SharedAddress(&m.arrived), bytes);
    Copy(m, next.weight + thread / 32 * bytes, 0, bytes / 2);
  }
  // Asks for the other half; in two parts what is handed on meanwhile comes through sooner.
  __device__ __forceinline__ void AskRest(const WideTile& next) const {
    if (!OneLane()) return;
    const uint32_t bytes = next.bytes, half = bytes / 2;
    Copy(Mine(), next.weight + thread / 32 * bytes + half, half, half);
  }
  // The same of stages that may have several fillings, one after the other.
  __device__ __forceinline__ void Ask() const {
    __syncwarp();
    if (!OneLane()) return;
    WideBuffer& m = Mine();
    const uint8_t* from = m.from + (kChainWarps * 2 - 1) * m.half;
    int left = m.left, stage = m.stage;
    uint32_t half = m.half;
    while (left == 0) {
      if (++stage == m.stage_count) stage = 0;
      const WideTile& tile = m.tiles[stage];
      left = tile.fillings, half = tile.bytes / 2;
      from = tile.weight + thread / 32 * tile.bytes;
    }
    ExpectBytes(SharedAddress(&m.arrived), 2 * half);
    Copy(m, from, 0, half);
    m.from = from + half, m.half = half, m.left = left - 1, m.stage = stage;
  }
  __device__ __forceinline__ void AskRest() const {
    if (!OneLane()) return;
    WideBuffer& m = Mine();
    Copy(m, m.from, m.half, m.half);
  }

 private:
  // Weights are not to drive out of the L2 cache what blocks hand over.
  __device__ __forceinline__ static void Copy(WideBuffer& m, const uint8_t* from, uint32_t at,
                                              uint32_t bytes) {
    CopyBulk(SharedAddress(m.weights) + at, from, bytes, SharedAddress(&m.arrived),
             EvictFirstPolicy());
  }
};

// A warp's weights of a filling of the input: of its 16 out channels, and of half of the in
// channels.
struct WideWeights {
  uint32_t main[kWidePieces * 5][4];  // the last ones are others' where there are fewer taps

  __device__ __forceinline__ void Load(WideStream& stream) {
    stream.Wait();
#pragma unroll
    for (int i = 0; i < kWidePieces * 5; ++i) LoadFragment(main[i], stream.Fragment(i));
  }
  // Once they are loaded, asks for what comes next in their place; next: as of WideStream::Ask.
  template <typename... Next>
  __device__ __forceinline__ void AskForNext(const WideStream& stream, const Next&... next) const {
    uint32_t loaded = 0;
#pragma unroll
    for (const auto& fragment : main) loaded |= fragment[3];
    WaitFor(loaded);
    stream.Ask(next...);
  }

 private:
  // An instruction that needs `loaded` and that no compiler leaves out.
  __device__ __forceinline__ static void WaitFor(uint32_t loaded) {
    if (loaded == 0x7fff7fff) __nanosleep(0);
  }
};

}  // namespace mjp

#endif  // KERNELS_CUDA_MEGAKERNEL_WEIGHT_PIPELINE_CUH_
