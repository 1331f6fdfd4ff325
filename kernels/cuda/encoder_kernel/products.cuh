#ifndef KERNELS_CUDA_ENCODER_KERNEL_PRODUCTS_CUH_
#define KERNELS_CUDA_ENCODER_KERNEL_PRODUCTS_CUH_

#include "kernels/cuda/encoder_kernel/weight_pipeline.cuh"

// The products of a layer: the input stands in shared memory with a border of zeros, so a tap is an
// offset. A pixel's channels are followed by 16 bytes that keep ldmatrix free of bank conflicts.

namespace mjp::encoder_kernel {

// A CTA's place in a layer.
struct Share {
  int part, slice;       // of the channels, of the rows
  int row0, rows;        // of the out map; rows 0: nothing to do
  int in_row0, in_rows;  // of the input map, its border included

  __device__ __forceinline__ explicit Share(const Layer& l) : part(l.part), slice(l.slice) {
    row0 = slice * l.rows;
    rows = slice < l.slices ? min(l.rows, l.out_h - row0) : 0;
    in_row0 = row0 * l.stride - 1;
    in_rows = (rows - 1) * l.stride + 3;
  }
};

// x over the number of which this is the inverse; 0 for an x below 0.
__device__ __forceinline__ int Over(int x, uint32_t inverse) {
  return static_cast<int>(static_cast<uint32_t>(max(x, 0)) * inverse >> kInverseBits);
}
// Column and row of a position.
__device__ __forceinline__ int2 PlaceOf(const Layer& l, int position) {
  const int row = Over(position, l.width_inverse);
  return {position - row * l.out_w, row};
}
// Bytes from the input's start to the pixel under the first tap of a 3x3 kernel at a place.
__device__ __forceinline__ int FirstTap(const Layer& l, int2 place) {
  return (place.y * l.stride * RowPixels(l) + place.x * l.stride) * PixelBytes(l);
}

// Walks the taps of a kernel and the channels of each, 16 at a time. Beyond the last tap, where
// weights are zero, it begins anew, so that only what counts is read.
struct TapCursor {
  int kx, ky, channel, offset;

  __device__ __forceinline__ TapCursor(const Layer& l, int k) {
    const int tap = Over(k / kTapStep, l.channels_inverse);
    channel = k - tap * l.in_c;
    ky = l.kernel == 3 ? tap / 3 : 0;
    kx = tap - ky * l.kernel;
    SetOffset(l);
  }
  __device__ __forceinline__ void Advance(const Layer& l) {
    channel += kTapStep, offset += 2 * kTapStep;
    if (channel < l.in_c) return;
    channel = 0;
    if (++kx == l.kernel) kx = 0, ++ky;
    if (ky == l.kernel) ky = 0;
    SetOffset(l);
  }

 private:
  __device__ __forceinline__ void SetOffset(const Layer& l) {
    const int middle = l.kernel == 1 ? 1 : 0;
    offset = ((ky + middle) * RowPixels(l) + kx + middle) * PixelBytes(l) + channel * 2;
  }
};

// The sums of a warp's k, for kTiles x 16 channels and kPairs x 16 positions, to `sums`: (part of
// k, position, channel).
template <Format F, int kTiles, int kPairs>
__device__ __forceinline__ void MultiplyTiles(const Layer& l, const Share& share, uint32_t input,
                                              float* sums, WeightPipeline& weights) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first = (warp & (l.NSplit() - 1)) * kPairs * kTilePositions;
  const int positions = share.rows * l.out_w;
  uint32_t base[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const int position = first + j * kTilePositions + (lane & 7) + ((lane >> 4) << 3);
    const int2 place = PlaceOf(l, position < positions ? position : 0);
    base[j] = input + FirstTap(l, place) + ((lane >> 3) & 1) * 16;
  }
  const ChunkRange range(l, warp);
  if (range.begin == range.end) return;
  TapCursor tap(l, range.begin * kChunkK);
  float acc[kTiles][2 * kPairs][4] = {};
#pragma unroll 1
  for (int chunk = range.begin; chunk < range.end; ++chunk) {
    weights.template Wait<kTiles>();
#pragma unroll
    for (int step = 0; step < kChunkK / 16; ++step) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int i = 0; i < kTiles; ++i)
        LoadMatrix4(a[i], Swizzled(weights.Chunk(i), lane & 15, step * 2 + (lane >> 4)));
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        uint32_t b[4];
        LoadMatrix4(b, base[j] + tap.offset);
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          MultiplyAccumulate<F>(acc[i][2 * j], a[i], b[0], b[1]);
          MultiplyAccumulate<F>(acc[i][2 * j + 1], a[i], b[2], b[3]);
        }
      }
      tap.Advance(l);
    }
    weights.template Advance<kTiles>(chunk + 1 < range.end);
  }
  constexpr int kPitch = SumPitch(kTiles);
  const int row0 = (warp >> l.n_split_log2 << l.n_split_log2) * kPairs * kTilePositions;
  float* to = sums + (row0 + first + 2 * (lane & 3)) * kPitch + (lane >> 2);
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kPairs; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        to[(j * 8 + (q & 1)) * kPitch + i * kTileChannels + (q >> 1) * 8] = acc[i][j][q];
}

template <Format F>
__device__ __forceinline__ void Multiply(const Layer& l, const Share& share, uint32_t input,
                                         float* sums, WeightPipeline& weights) {
  const auto tiles = [&]<int kTiles, int kPairs>() {
    MultiplyTiles<F, kTiles, kPairs>(l, share, input, sums, weights);
  };
  switch (l.Tiles() * 8 + l.pairs) {
    case 8 + 1:
      return tiles.template operator()<1, 1>();
    case 8 + 2:
      return tiles.template operator()<1, 2>();
    case 8 + 3:
      return tiles.template operator()<1, 3>();
    case 8 + 4:
      return tiles.template operator()<1, 4>();
    case 8 + 5:
      return tiles.template operator()<1, 5>();
    case 16 + 1:
      return tiles.template operator()<2, 1>();
    case 16 + 2:
      return tiles.template operator()<2, 2>();
    case 16 + 3:
      return tiles.template operator()<2, 3>();
    case 16 + 4:
      return tiles.template operator()<2, 4>();
    default:
      return Trap();
  }
}

}  // namespace mjp::encoder_kernel

#endif  // KERNELS_CUDA_ENCODER_KERNEL_PRODUCTS_CUH_
