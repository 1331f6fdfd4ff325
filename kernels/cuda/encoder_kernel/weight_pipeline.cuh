#ifndef KERNELS_CUDA_ENCODER_KERNEL_WEIGHT_PIPELINE_CUH_
#define KERNELS_CUDA_ENCODER_KERNEL_WEIGHT_PIPELINE_CUH_

#include "kernels/cuda/conv/gather.cuh"
#include "kernels/cuda/encoder_kernel/encoder_kernel.cuh"
#include "kernels/cuda/primitives/ptx.cuh"

// The weights of a warp: 16 out channels x 64 k at a time, in the order in which it multiplies
// them, through a ring of its own in shared memory that is filled ahead, across layers.

namespace mjp::encoder_kernel {

// The chunks of k that a warp multiplies in a layer: the first warps have some, if not all do.
struct ChunkRange {
  int begin, end;

  __device__ __forceinline__ ChunkRange(const Layer& l, int warp) {
    const int split = l.KSplit(), part = warp >> l.n_split_log2, log2 = 31 - __clz(split);
    const int chunks = max(static_cast<int>(l.chunks), split);
    begin = min(static_cast<int>(l.chunks), chunks * part >> log2);
    end = min(static_cast<int>(l.chunks), chunks * (part + 1) >> log2);
  }
};

class WeightPipeline {
 public:
  // `ring`: shared memory of the CTA, that of the warps one behind the other. The first chunks are
  // under way then.
  __device__ __forceinline__ WeightPipeline(const Layer* layers, int layer_count, uint32_t ring)
      : layers_(layers),
        layer_count_(layer_count),
        warp_(static_cast<int>(threadIdx.x) / 32),
        ring_(ring + warp_ * kRingChunks * kChunkBytes) {
    BeginLayer();
#pragma unroll 1
    for (int i = 0; i < kRingChunks; ++i) CopyNext();
  }

  // Waits for the next kTiles chunks, all of the same k; Chunk(i) is that of the i-th 16 channels.
  template <int kTiles>
  __device__ __forceinline__ void Wait() const {
    WaitCopies<kRingChunks - kTiles>();
    __syncwarp();
  }
  __device__ __forceinline__ uint32_t Chunk(int i) const {
    const int at = read_ + i;
    return ring_ + (at < kRingChunks ? at : at - kRingChunks) * kChunkBytes;
  }
  // The chunks were multiplied: others take their places, at once or with CatchUp.
  template <int kTiles>
  __device__ __forceinline__ void Advance(bool at_once) {
    if (at_once) {
      __syncwarp();
#pragma unroll 1
      for (int i = 0; i < kTiles; ++i) CopyNext();
    } else {
      free_ += kTiles;
    }
    read_ += kTiles;
    if (read_ >= kRingChunks) read_ -= kRingChunks;
  }
  // After a barrier of the CTA.
  __device__ __forceinline__ void CatchUp() {
    for (; free_ > 0; --free_) CopyNext();
  }

 private:
  // Goes on to the first layer from `layer_` on in which this warp has work.
  __device__ __forceinline__ void BeginLayer() {
    for (; layer_ < layer_count_; ++layer_) {
      const Layer& l = layers_[layer_];
      const ChunkRange range(l, warp_);
      if (l.slice >= l.slices || range.begin == range.end) continue;
      pitch_ = l.chunks * kRowBytes;
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const int row = l.part * l.Tiles() * kChunkRows + lane / kStageVectors;
      next_ = static_cast<const uint8_t*>(l.weight) + static_cast<size_t>(row) * pitch_ +
              range.begin * kRowBytes + lane % kStageVectors * 16;
      left_ = range.end - range.begin;
      tiles_ = l.Tiles();
      tile_ = 0;
      return;
    }
  }

  __device__ __forceinline__ void CopyNext() {
    if (layer_ < layer_count_) {
      constexpr int kRows = 32 / kStageVectors;  // of a chunk that the lanes copy at once
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const uint32_t to = ring_ + write_ * kChunkBytes;
      const uint8_t* from = next_ + static_cast<size_t>(tile_ * kChunkRows) * pitch_;
#pragma unroll
      for (int i = 0; i < kChunkRows / kRows; ++i)
        CopyAsync16(Swizzled(to, i * kRows + lane / kStageVectors, lane % kStageVectors),
                    from + static_cast<size_t>(i * kRows) * pitch_, true);
      if (++tile_ == tiles_) {
        tile_ = 0;
        next_ += kRowBytes;
        if (--left_ == 0) ++layer_, BeginLayer();
      }
    }
    CommitCopies();
    if (++write_ == kRingChunks) write_ = 0;
  }

  const Layer* const layers_;  // in shared memory
  const int layer_count_, warp_;
  const uint32_t ring_;
  int read_ = 0, write_ = 0;  // places in the ring
  int free_ = 0;              // chunks that were multiplied and not replaced
  // what is copied next
  int layer_ = 0, left_ = 0, tile_ = 0, tiles_ = 1, pitch_ = 0;
  const uint8_t* next_ = nullptr;
};

}  // namespace mjp::encoder_kernel

#endif  // KERNELS_CUDA_ENCODER_KERNEL_WEIGHT_PIPELINE_CUH_
