#ifndef KERNELS_CUDA_SAMPLER_PICTURE_RESIZE_CUH_
#define KERNELS_CUDA_SAMPLER_PICTURE_RESIZE_CUH_

#include <cuda_runtime_api.h>

#include "kernels/cuda/sampler/conditioning.cuh"

namespace mjp {

// Weights of one direction: output i is the sum over k < taps of weights[i * taps + k] times
// input[first[i] + k]; a weight of zero may stand beyond the input's end.
struct DeviceResizeTaps {
  int taps = 0;
  const int* first = nullptr;
  const float* weights = nullptr;
};

// LaunchPrepare of pictures that are resized after they are normalised and before they are cropped,
// along x and then along y. Not with space_to_depth.
struct PrepareResizedArgs {
  PrepareArgs picture;  // top and left: in the resized picture
  DeviceResizeTaps x, y;
};
void LaunchPrepareResized(Format format, const PrepareResizedArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_PICTURE_RESIZE_CUH_
