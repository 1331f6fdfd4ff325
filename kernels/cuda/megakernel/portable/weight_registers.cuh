#ifndef KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_REGISTERS_CUH_
#define KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_REGISTERS_CUH_

#include "kernels/cuda/megakernel/portable/virtual_ctas.cuh"

// Weights of the portable kernel: device memory -> registers, a K block ahead of its products. The
// stream of K blocks goes on across tiles, layers and passes.

namespace mjp::megakernel {

// Half of a warp's weights of a K block, [k step][tap]; with fewer taps the last are not used.
using HalfBlock = uint32_t[kKSteps / 2 * 5][4];

class WeightRegisters {
 public:
  HalfBlock first, second;

  __device__ __forceinline__ void Begin() {
    next_ = -1, k_blocks_ = 0;
    FindNextTile();
    LoadFirst();
    LoadSecond();
  }
  // Issues the loads of the stream's next K block: of its first half, once that of the block before
  // has been multiplied; then of its second one, likewise.
  __device__ __forceinline__ void LoadFirst() {
    if (k_blocks_ > 0) {
      from_ += kMmaWarps * bytes_;
    } else {
      const WeightTile tile = OwnWeightTiles()[next_];
      k_blocks_ = tile.k_blocks, bytes_ = tile.bytes;
      from_ = tile.weight + threadIdx.x / 32 * bytes_ + threadIdx.x % 32 * 16;
    }
    Load(first, from_);
  }
  __device__ __forceinline__ void LoadSecond() {
    Load(second, from_ + kKSteps / 2 * Taps() * kFragmentBytes);
    if (--k_blocks_ == 0) FindNextTile();
  }
  // Loads the shortcut's fragments of the K block whose first half has been multiplied, in place of
  // that.
  __device__ __forceinline__ void LoadShortcut() {
    const uint64_t policy = EvictFirstPolicy();
#pragma unroll
    for (int i = 0; i < kKSteps; ++i)
      LoadOnce(first[i], from_ + (kKSteps * 5 + i) * kFragmentBytes, policy);
  }

 private:
  __device__ __forceinline__ int Taps() const {
    return min(bytes_ / (kKSteps * kFragmentBytes), 5);
  }
  __device__ __forceinline__ void Load(HalfBlock& to, const uint8_t* from) const {
    const int taps = Taps();
    const uint64_t policy = EvictFirstPolicy();
#pragma unroll
    for (int i = 0; i < kKSteps / 2 * 5; ++i)
      if (i < kKSteps / 2 * 2 || taps > (i < kKSteps / 2 * 3 ? 2 : 3))
        LoadOnce(to[i], from + i * kFragmentBytes, policy);
  }
  __device__ __forceinline__ void FindNextTile() {
    do {
      if (OwnWeightTiles()[++next_].k_blocks == kEndOfTiles) next_ = 0;
    } while (OwnWeightTiles()[next_].k_blocks == 0);
  }

  const uint8_t* from_;   // this lane's part of the K block
  int k_blocks_, bytes_;  // of its tile, from it on; of each warp
  int next_;              // once there are none: the next tile
};

}  // namespace mjp::megakernel

#endif  // KERNELS_CUDA_MEGAKERNEL_PORTABLE_WEIGHT_REGISTERS_CUH_
