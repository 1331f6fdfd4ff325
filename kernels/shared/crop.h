#ifndef KERNELS_SHARED_CROP_H_
#define KERNELS_SHARED_CROP_H_

namespace mjp {

// First row (or column) of the centre crop of `crop` out of `full`: half of what is left over,
// rounded as torchvision's center_crop rounds it, ties to even: of 5 left over 2, of 7 left over 4.
inline int CropOffset(int full, int crop) {
  const int half = (full - crop) / 2;
  return (full - crop) % 2 == 1 && half % 2 == 1 ? half + 1 : half;
}

}  // namespace mjp

#endif  // KERNELS_SHARED_CROP_H_
