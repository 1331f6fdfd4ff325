#ifndef KERNELS_CUDA_CONV_GATHER_CUH_
#define KERNELS_CUDA_CONV_GATHER_CUH_

#include "kernels/cuda/conv/conv.cuh"

// How the convolutions' blocks read activations as rows of an implicit matrix: a stage is 128 bytes
// of k = (tap, in channel) for every row, in shared memory with the vectors of a row permuted so
// that neither ldmatrix nor wgmma meets a bank conflict (the 128-byte swizzle of the hardware).

namespace mjp {

constexpr int kStageVectors = 8;  // 16-byte vectors of k in a stage
constexpr int kRowBytes = kStageVectors * 16;

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
  return {b * (s.in_h >> s.upsample2x) * (s.in_w >> s.upsample2x), oy * s.stride - s.pad_h,
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
  pixel = inside
              ? row.pixel0 + (iy >> s.upsample2x) * (s.in_w >> s.upsample2x) + (ix >> s.upsample2x)
              : 0;
  return inside;
}

}  // namespace mjp

#endif  // KERNELS_CUDA_CONV_GATHER_CUH_
