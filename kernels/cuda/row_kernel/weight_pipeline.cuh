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
  __device__ __forceinline__ void Load() {
    WaitCopies<kChunks - 1>();
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i)
      LoadFragment(fragment[i], chunk_ + i * kFragmentBytes);
  }

  // Goes on to the chunk behind, once `fragment` has been multiplied.
  __device__ __forceinline__ void Advance() {
    CopyNext();
    Load();
  }

 private:
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

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_WEIGHT_PIPELINE_CUH_
