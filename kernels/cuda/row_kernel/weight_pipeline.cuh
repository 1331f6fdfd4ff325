#ifndef KERNELS_CUDA_ROW_KERNEL_WEIGHT_PIPELINE_CUH_
#define KERNELS_CUDA_ROW_KERNEL_WEIGHT_PIPELINE_CUH_

#include "kernels/cuda/norm_conv/warp_mma.cuh"

// The weights of a warp: it reads the same stream in every pass, in chunks, through a ring in
// shared memory whose chunks are copied ahead, across layers and passes. A lane reads back only
// what it copied itself, so no warp waits for another one.

namespace mjp::row_kernel {

template <int kChunks>
class WeightPipeline {
 public:
  // `begin`: the warp's `fragments` fragments, a multiple of kChunkFragments, 0 for a warp without
  // work; `ring`: its chunks in shared memory. Copies are under way then; Load comes next.
  __device__ __forceinline__ WeightPipeline(const uint8_t* begin, int fragments, uint32_t ring,
                                            int lane)
      : begin_(begin + lane * 16),
        next_(begin_),
        end_(begin_ + static_cast<size_t>(fragments) * kFragmentBytes),
        first_(ring + lane * 16),
        chunk_(first_) {
#pragma unroll 1
    for (int i = 0; i < kChunks && fragments > 0; ++i) CopyNext();
  }

  // This lane's part of the next chunk, once it has been loaded.
  uint32_t fragment[kChunkFragments][4];

  // Loads the next chunk when it has arrived.
  __device__ __forceinline__ void Load() { Read<0>(fragment); }

  // Goes on to the chunk behind, once `fragment` has been multiplied.
  __device__ __forceinline__ void Advance() {
    CopyNext();
    Load();
  }

 protected:
  // Loads the chunk kFurther behind the next one when it has arrived.
  template <int kFurther>
  __device__ __forceinline__ void Read(uint32_t (&to)[kChunkFragments][4]) const {
    WaitCopies<kChunks - 1 - kFurther>();
    uint32_t at = chunk_ + kFurther * kChunkBytes;
    if (kFurther > 0 && at >= first_ + kChunks * kChunkBytes) at -= kChunks * kChunkBytes;
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i) LoadFragment(to[i], at + i * kFragmentBytes);
  }

  // Copies what follows those under way into the place of the chunk that was read.
  __device__ __forceinline__ void CopyNext() {
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i)
      CopyAsync16(chunk_ + i * kFragmentBytes, next_ + i * kFragmentBytes, true);
    CommitCopies();
    next_ += kChunkBytes;
    if (next_ == end_) next_ = begin_;
    chunk_ += kChunkBytes;
    if (chunk_ == first_ + kChunks * kChunkBytes) chunk_ = first_;
  }

  const uint8_t *begin_, *next_, *end_;
  uint32_t first_, chunk_;
};

// The same with several chunks in registers before the input that they are multiplied with.
template <int kChunks>
class WeightsAhead : private WeightPipeline<kChunks> {
 public:
  using WeightPipeline<kChunks>::WeightPipeline;
  static constexpr int kAhead = 2;

  using Chunk = uint32_t[kChunkFragments][4];

  // Loads the next chunks.
  __device__ __forceinline__ void LoadFirst(Chunk (&to)[kAhead]) const {
    this->template Read<0>(to[0]);
    this->template Read<1>(to[1]);
  }
  // Loads the chunk kAhead behind the next one, which has been multiplied.
  __device__ __forceinline__ void LoadFurther(Chunk& to) {
    this->CopyNext();
    this->template Read<kAhead - 1>(to);
  }
  // Copies what follows into the places of the last chunks of `count`, which have been multiplied.
  __device__ __forceinline__ void Refill(int count) {
#pragma unroll 1
    for (int i = min(count, kAhead); i > 0; --i) this->CopyNext();
  }
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_WEIGHT_PIPELINE_CUH_
