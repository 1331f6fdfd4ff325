#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_

#include "kernels/cuda/megakernel/portable/portable.cuh"
#include "kernels/cuda/megakernel/weight_pipeline.cuh"

// Weights of the portable kernel: device memory -> a ring of stages in each warp's shared memory
// (cp.async), from which its mma read them. A lane copies what it reads itself, so that it waits
// for its own copies alone. The stream of stages goes on across tiles, layers and passes.

namespace mjp::megakernel {

class WeightRing {
 public:
  // tiles: (count), of which at least one has K blocks; shared: of this warp's stages.
  __device__ __forceinline__ void Begin(const WeightTile* tiles, int count, uint32_t shared,
                                        int stages, int thread) {
    tiles_ = tiles, count_ = count, index_ = -1;
    lane_ = thread % 32 * 16, warp_ = thread / 32;
    begin_ = at_ = shared + lane_, end_ = begin_ + stages * kStageBytes, ring_ = stages;
    NextTile();
    Replace(stages);
  }
  // Waits for a K block of `stages` stages; of one that is longer than the ring ReadStage waits.
  __device__ __forceinline__ void Await(int stages) {
    long_ = stages > ring_;
    if (!long_) WaitUntilLeft(ring_ - stages);
  }
  __device__ __forceinline__ bool IsLong() const { return long_; }
  // Where this lane's fragment `i` of a K block is that is not long.
  __device__ __forceinline__ uint32_t Fragment(int i) const {
    const uint32_t at = at_ + i * kFragmentBytes;
    return at < end_ ? at : at - (end_ - begin_);
  }
  // Where this lane's fragments of a long K block's next stage are. `loaded`: of registers that
  // hold what was read of the last one.
  __device__ __forceinline__ uint32_t ReadStage(bool first, uint32_t loaded) {
    if (!first) {
      WaitForLoaded(loaded);
      Replace(1);
    }
    WaitUntilLeft(ring_ - 1);
    return at_;
  }
  // Copies the next stages of the stream into the place of a K block, which all lanes have read.
  __device__ __forceinline__ void ReplaceBlock(int stages) { Replace(long_ ? 1 : stages); }
  // Waits for all copies: none must outlive its CTA.
  __device__ __forceinline__ void Drain() const { WaitCopies<0>(); }

 private:
  __device__ __forceinline__ uint32_t Behind(uint32_t at) const {
    return at + kStageBytes == end_ ? begin_ : at + kStageBytes;
  }
  // Waits until no more than the last `left` copies are under way.
  __device__ __forceinline__ void WaitUntilLeft(int left) const {
    switch (left) {
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
  // Copies the next stages of the stream into the place of the oldest ones.
  __device__ __forceinline__ void Replace(int stages) {
    const uint64_t policy = EvictFirstPolicy();
#pragma unroll 1
    for (; stages > 0; --stages) {
#pragma unroll
      for (int i = 0; i < kStageFragments; ++i)
        CopyAsync16Once(at_ + i * kFragmentBytes, from_ + i * kFragmentBytes, true, policy);
      CommitCopies();
      at_ = Behind(at_);
      from_ += kStageBytes;
      if (--stages_ > 0) continue;
      if (--k_blocks_ == 0) {
        NextTile();
        continue;
      }
      stages_ = bytes_ / kStageBytes;
      from_ += (kMmaWarps - 1) * bytes_;
    }
  }
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
  int lane_, warp_, ring_;
  uint32_t begin_, end_, at_;
  bool long_ = false;
};

// A warp's weights of a K block as its mma take them, [k step][tap], and behind them the
// shortcut's, [k step]. kLong: of one that is longer than the ring.
template <bool kLong>
class BlockWeights {
 public:
  __device__ __forceinline__ explicit BlockWeights(WeightRing& ring) : ring_(ring) {}
  // Fragment `i`; each once, in order.
  __device__ __forceinline__ void Load(int i, uint32_t (&weight)[4]) {
    if constexpr (kLong) {
      if (i % kStageFragments == 0) at_ = ring_.ReadStage(i == 0, loaded_), loaded_ = 0;
      LoadFragment(weight, at_ + i % kStageFragments * kFragmentBytes);
    } else {
      LoadFragment(weight, ring_.Fragment(i));
    }
    loaded_ |= weight[3];
  }
  // Once the block is multiplied.
  __device__ __forceinline__ void Release() const { WaitForLoaded(loaded_); }

 private:
  WeightRing& ring_;
  uint32_t at_ = 0, loaded_ = 0;
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_RING_CUH_
