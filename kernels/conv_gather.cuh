#ifndef KERNELS_CONV_GATHER_CUH_
#define KERNELS_CONV_GATHER_CUH_

#include "kernels/conv.cuh"
#include "kernels/ptx.cuh"

// How the convolutions' blocks read weights, and activations as rows of an implicit matrix: a stage
// is 128 bytes of k = (tap, in channel) for every row, in shared memory with the vectors of a row
// permuted so that neither ldmatrix nor wgmma meets a bank conflict (the 128-byte swizzle of the
// hardware). Of each stage a thread copies one vector of every kRowsPerPass-th row.

namespace dp {

constexpr int kStageVectors = 8;  // 16-byte vectors of k in a stage
constexpr int kRowBytes = kStageVectors * 16;

// Stages of the whole k.
inline int KStages(Format format, const ConvShape& s) {
  const int per_stage = kRowBytes / static_cast<int>(FormatBytes(format));
  return (s.K() + per_stage - 1) / per_stage;
}

__device__ __forceinline__ uint32_t Swizzled(uint32_t base, int row, int vector) {
  return base + row * kRowBytes + ((vector ^ (row & 7)) << 4);
}

// Where one thread's row of gathered activations starts.
struct GatherRow {
  int pixel0;  // first of its map in memory; negative: no such position
  int iy0, ix0;
};

__device__ __forceinline__ GatherRow MakeGatherRow(const ConvShape& s, int n, int pad_w) {
  if (n >= s.batch * s.out_h * s.out_w) return {-1, 0, 0};
  const int ox = n % s.out_w, rest = n / s.out_w;
  const int oy = rest % s.out_h, b = rest / s.out_h;
  return {b * (s.in_h >> s.doubled) * (s.in_w >> s.doubled), oy * s.stride - s.pad_h,
          ox * s.stride - pad_w};
}

// Walks k in steps of one stage: which tap and which vector of channels this thread loads.
struct KCursor {
  int c, kx, ky;
  __device__ __forceinline__ void Start(int vector, int c_vectors, int kernel_w) {
    const int tap = vector / c_vectors;
    c = vector - tap * c_vectors;
    ky = tap / kernel_w;
    kx = tap - ky * kernel_w;
  }
  __device__ __forceinline__ void Advance(int c_vectors, int kernel_w) {
    c += kStageVectors;
    while (c >= c_vectors) {
      c -= c_vectors;
      if (++kx == kernel_w) kx = 0, ++ky;
    }
  }
};

// The pixel that `row` reads at the cursor's tap. False outside the map: zeros are read there.
__device__ __forceinline__ bool GatherPixel(const ConvShape& s, const GatherRow& row,
                                            const KCursor& cursor, size_t& pixel) {
  const int iy = row.iy0 + cursor.ky, ix = row.ix0 + cursor.kx;
  const bool inside =
      row.pixel0 >= 0 && cursor.ky < s.kernel_h && iy >= 0 && iy < s.in_h && ix >= 0 && ix < s.in_w;
  pixel = inside ? row.pixel0 + (iy >> s.doubled) * (s.in_w >> s.doubled) + (ix >> s.doubled) : 0;
  return inside;
}

// A thread's copies of kRows rows of the packed weights, stage after stage.
template <int kRows, int kRowsPerPass>
class WeightCopies {
 public:
  // Rows from `row0` on, stages of `stages` from `first` on.
  __device__ __forceinline__ WeightCopies(const void* weight, int row0, int first, int stages)
      : pitch_(size_t{kRowBytes} * stages) {
    const int row = row0 + static_cast<int>(threadIdx.x) / kStageVectors;
    from_ = static_cast<const uint8_t*>(weight) + row * pitch_ + size_t{kRowBytes} * first +
            threadIdx.x % kStageVectors * 16;
  }
  // Begins to copy the next stage.
  __device__ __forceinline__ void Load(uint32_t to) {
    const int row = threadIdx.x / kStageVectors, vector = threadIdx.x % kStageVectors;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      CopyAsync16(Swizzled(to, row + i * kRowsPerPass, vector), from_ + i * kRowsPerPass * pitch_,
                  true);
    from_ += kRowBytes;
  }

 private:
  size_t pitch_;
  const uint8_t* from_;
};

// A thread's copies of kRows gathered rows of activations, stage after stage.
template <typename T, int kRows, int kRowsPerPass>
class PositionCopies {
 public:
  // `position(row)` is the position that a row holds; stages from `first` on.
  template <typename Position>
  __device__ __forceinline__ PositionCopies(const ConvArgs& a, int pad_w, int first,
                                            Position&& position)
      : a_(a) {
    const int row = threadIdx.x / kStageVectors;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      rows_[i] = MakeGatherRow(a.shape, position(row + i * kRowsPerPass), pad_w);
    cursor_.Start(first * kStageVectors + threadIdx.x % kStageVectors, a.shape.in_c / kPerVector,
                  a.shape.kernel_w);
  }
  // Begins to copy the next stage.
  __device__ __forceinline__ void Load(uint32_t to) {
    const ConvShape& s = a_.shape;
    const int row = threadIdx.x / kStageVectors, vector = threadIdx.x % kStageVectors;
    const bool second = s.first_c > 0 && cursor_.c >= s.first_c / kPerVector;
    const int channels = s.first_c == 0 ? s.in_c : second ? s.in_c - s.first_c : s.first_c;
    const T* x = static_cast<const T*>(second ? a_.x2 : a_.x) +
                 (second ? cursor_.c - s.first_c / kPerVector : cursor_.c) * kPerVector;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      size_t pixel;
      const bool inside = GatherPixel(s, rows_[i], cursor_, pixel);
      CopyAsync16(Swizzled(to, row + i * kRowsPerPass, vector), x + pixel * channels, inside);
    }
    cursor_.Advance(s.in_c / kPerVector, s.kernel_w);
  }

 private:
  static constexpr int kPerVector = 16 / sizeof(T);
  const ConvArgs& a_;
  GatherRow rows_[kRows];
  KCursor cursor_;
};

}  // namespace dp

#endif  // KERNELS_CONV_GATHER_CUH_
