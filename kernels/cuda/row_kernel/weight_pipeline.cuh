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
  // work; `ring`: its chunks in shared memory. Copies are under way then.
  __device__ __forceinline__ WeightPipeline(const uint8_t* begin, int fragments, uint32_t ring,
                                            int lane)
      : begin_(begin + lane * 16),
        bytes_(fragments * kFragmentBytes),
        first_(ring + lane * 16),
        chunk_(first_) {
#pragma unroll 1
    for (int i = 0; i < kChunks && fragments > 0; ++i) CopyNext();
  }

  // Loads this lane's parts of the next `count` chunks, at most kMost, when they have arrived.
  // Their places are filled with what follows.
  template <int kMost>
  __device__ __forceinline__ void Take(int count,
                                       uint32_t (&fragments)[kMost][kChunkFragments][4]) {
    static_assert(kMost <= 2 && kMost <= kChunks);
    uint32_t from = chunk_, loaded = 0;
#pragma unroll
    for (int chunk = 0; chunk < kMost; ++chunk) {
      if (chunk >= count) break;
      chunk == 0 ? WaitCopies<kChunks - 1>() : WaitCopies<kChunks - 2>();
#pragma unroll
      for (int i = 0; i < kChunkFragments; ++i) {
        LoadFragment(fragments[chunk][i], from + i * kFragmentBytes);
        loaded |= fragments[chunk][i][3];
      }
      from = Behind(from);
    }
    WaitForLoaded(loaded);
#pragma unroll 1
    for (int chunk = 0; chunk < min(count, kMost); ++chunk) CopyNext();
  }

 private:
  __device__ __forceinline__ uint32_t Behind(uint32_t chunk) const {
    return chunk + kChunkBytes == first_ + kChunks * kChunkBytes ? first_ : chunk + kChunkBytes;
  }
  // Copies what follows those under way into the place of the chunk that was read.
  __device__ __forceinline__ void CopyNext() {
#pragma unroll
    for (int i = 0; i < kChunkFragments; ++i)
      CopyAsync16(chunk_ + i * kFragmentBytes, begin_ + next_ + i * kFragmentBytes, true);
    CommitCopies();
    next_ += kChunkBytes;
    if (next_ == bytes_) next_ = 0;
    chunk_ = Behind(chunk_);
  }

  const uint8_t* begin_;
  uint32_t next_ = 0, bytes_;  // what is copied next, from begin_ on; of the stream
  uint32_t first_, chunk_;
};

}  // namespace mjp::row_kernel

#endif  // KERNELS_CUDA_ROW_KERNEL_WEIGHT_PIPELINE_CUH_
