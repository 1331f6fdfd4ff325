#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_

#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "kernels/cuda/megakernel/weight_pipeline.cuh"

// Weights of the portable kernel: device memory -> a ring of stages in each warp's shared memory
// (cp.async) -> registers. A lane copies what it reads itself, so that it waits for its own copies
// alone. The stream of stages goes on across tiles, layers and passes.

namespace mjp::megakernel {

class WeightRing {
 public:
  // tiles: (count), of which at least one has K blocks; shared: of this warp's stages.
  __device__ __forceinline__ void Begin(const WeightTile* tiles, int count, uint32_t shared,
                                        int stages, int thread) {
    tiles_ = tiles, count_ = count, index_ = -1;
    lane_ = thread % 32 * 16, warp_ = thread / 32;
    begin_ = at_ = shared + lane_, end_ = begin_ + stages * kStageBytes, pending_ = stages - 2;
    NextTile();
    for (int i = 0; i < stages; ++i) Replace();
  }
  // Waits for the oldest stage; kStageFragments fragments for this lane from Oldest() on.
  __device__ __forceinline__ void Wait() const {
    switch (pending_) {
      case 0:
        return WaitCopies<0>();
      case 1:
        return WaitCopies<1>();
      case 2:
        return WaitCopies<2>();
      case 3:
        return WaitCopies<3>();
      case 4:
        return WaitCopies<4>();
      case 5:
        return WaitCopies<5>();
      default:
        return WaitCopies<6>();
    }
  }
  __device__ __forceinline__ uint32_t Oldest() const { return at_; }
  // The stage after the oldest one.
  __device__ __forceinline__ uint32_t Second() const {
    return at_ + kStageBytes == end_ ? begin_ : at_ + kStageBytes;
  }
  // Copies the next stage of the stream into the place of the oldest one, which has been read.
  __device__ __forceinline__ void Replace() {
#pragma unroll
    for (int i = 0; i < kStageFragments; ++i)
      CopyAsync16Once(at_ + i * kFragmentBytes, from_ + i * kFragmentBytes, true,
                      EvictFirstPolicy());
    CommitCopies();
    at_ = Second();
    from_ += kStageBytes;
    if (--stages_ > 0) return;
    if (--k_blocks_ == 0) return NextTile();
    stages_ = bytes_ / kStageBytes;
    from_ += (kMmaWarps - 1) * bytes_;
  }
  // Waits for all copies: none must outlive its CTA.
  __device__ __forceinline__ void Drain() const { WaitCopies<0>(); }

 private:
  __device__ __forceinline__ void NextTile() {
    do index_ = index_ + 1 < count_ ? index_ + 1 : 0;
    while (tiles_[index_].k_blocks == 0);
    const WeightTile& tile = tiles_[index_];
    k_blocks_ = tile.k_blocks, bytes_ = tile.bytes, stages_ = bytes_ / kStageBytes;
    from_ = tile.weight + warp_ * bytes_ + lane_;
  }

  const WeightTile* tiles_;
  const uint8_t* from_;
  int count_, index_, k_blocks_, bytes_, stages_;  // what is left of the tile, and of its K block
  int lane_, warp_, pending_;
  uint32_t begin_, end_, at_;
};

// A warp's weights of a K block, [k step][tap], and behind them the shortcut's, [k step].
struct PortableFragments {
  static constexpr int kMostStages = 6;
  uint32_t of[kMostStages * kStageFragments][4];

  // The first `stages` stages. The place of one is filled again once the next one has been waited
  // for: by then it has been read.
  __device__ __forceinline__ void Load(WeightRing& ring, int stages) {
#pragma unroll
    for (int s = 0; s < kMostStages; ++s) {
      if (s >= stages) break;
      ring.Wait();
      const uint32_t at = s == 0 ? ring.Oldest() : ring.Second();
#pragma unroll
      for (int i = 0; i < kStageFragments; ++i)
        LoadFragment(of[s * kStageFragments + i], at + i * kFragmentBytes);
      if (s > 0) ReplaceRead(ring, s - 1);
    }
#pragma unroll
    for (int s = 0; s < kMostStages; ++s)
      if (s + 1 == stages) ReplaceRead(ring, s);
  }

 private:
  // Fills the ring's oldest stage again, whose fragments are those of stage `s`.
  __device__ __forceinline__ void ReplaceRead(WeightRing& ring, int s) {
    uint32_t loaded = 0;
#pragma unroll
    for (int i = 0; i < kStageFragments; ++i) loaded |= of[s * kStageFragments + i][3];
    WaitForLoaded(loaded);
    ring.Replace();
  }
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_
