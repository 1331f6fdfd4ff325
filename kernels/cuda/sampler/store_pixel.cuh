#ifndef KERNELS_CUDA_SAMPLER_STORE_PIXEL_CUH_
#define KERNELS_CUDA_SAMPLER_STORE_PIXEL_CUH_

#include "kernels/cuda/primitives/device_math.cuh"
#include "kernels/cuda/sampler/conditioning.cuh"

namespace mjp {

// Stores a prepared pixel of picture `frame` where PrepareArgs::y has it, but for space_to_depth.
template <typename T>
__device__ __forceinline__ void StorePixel(const PrepareArgs& a, int frame, int y, int x,
                                           const T (&rgb)[3]) {
  if (a.patch == 0) {
    Pack<T, 8> out;
    for (int c = 0; c < 8; ++c) out.v[c] = c < 3 ? rgb[c] : FromFloat<T>(0.0f);
    static_cast<Pack<T, 8>*>(a.y)[(static_cast<size_t>(frame) * a.out_h + y) * a.out_w + x] = out;
    return;
  }
  const int side = a.out_w / a.patch;
  const int row = frame * (side * side + 1) + 1 + y / a.patch * side + x / a.patch;
  T* const to = static_cast<T*>(a.y) + static_cast<size_t>(row) * a.patch_pitch +
                (y % a.patch * a.patch + x % a.patch) * 3;
  for (int c = 0; c < 3; ++c) to[c] = rgb[c];
}

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_STORE_PIXEL_CUH_
