#ifndef KERNELS_CUDA_SAMPLER_CONDITIONING_CUH_
#define KERNELS_CUDA_SAMPLER_CONDITIONING_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/shared/format.h"
#include "kernels/shared/host_device.h"

// From observations to what the networks read: pictures prepared, conditioning vector assembled.

namespace mjp {

// Crops and normalises pictures through their camera's table of the 256 values of each channel,
// which holds the normaliser's own float32 results.
struct PrepareArgs {
  int frames = 0;                   // pictures made
  int in_stride = 1, in_first = 0;  // see Input
  int in_h = 0, in_w = 0;           // of the input pictures, RGB
  int top = 0, left = 0, out_h = 0, out_w = 0;
  const uint8_t* rgb = nullptr;  // (.., cameras, in_h, in_w, 3)
  int cameras = 1;
  const float* table = nullptr;  // (cameras, 3, 256)
  // (frames, out_h, out_w, 8), storage; channels 3.. are 0. With space_to_depth, 2x2 pixels in one
  // place: (frames, out_h / 2, out_w / 2, 2, 2, 4), of even sizes.
  void* y = nullptr;
  bool space_to_depth = false;
  // > 0: of square pictures the pixels of `patch` x `patch` patches side by side, as a linear layer
  // reads them: (frames, 1 + patches, patch_pitch), of each (patch, patch, 3). A picture's first
  // row is a class token's, and what no pixel fills stays as it is.
  int patch = 0, patch_pitch = 0;

  // Which input picture `f` reads, and the table of that one's camera, (3, 256).
  MJP_HOST_DEVICE int Input(int f) const { return f * in_stride + in_first; }
  MJP_HOST_DEVICE const float* TableOf(int input) const { return table + input % cameras * 768; }
};
void LaunchPrepare(Format format, const PrepareArgs& args, cudaStream_t stream);

// Puts the parts of the conditioning vector in order: for each environment and step
// [state, features, environment], or [features, state] with image_first.
struct ConditioningArgs {
  int environments = 0, steps = 0;
  int state_dim = 0, feature_dim = 0, environment_dim = 0;  // of one step
  bool image_first = false;
  const float *state = nullptr, *environment = nullptr;  // normalised, (environments, steps, dim)
  const float* features = nullptr;                       // part p at features + p * part_stride,
  int feature_parts = 1;                                 // each (environments, steps, part_dim)
  size_t part_stride = 0;
  const float* given = nullptr;      // (environments, width) taken as it is if *use_given
  const int* use_given = nullptr;    // device flag
  float* cond = nullptr;             // (environments, width)
  void* mish = nullptr;              // (environments, mish_pitch), storage: Mish(cond), then 0
  bool silu = false;                 // SiLU in its place
  bool without_environment = false;  // mish, silu: of the other columns alone
  int mish_pitch = 0;
};
void LaunchConditioning(Format format, const ConditioningArgs& args, cudaStream_t stream);

}  // namespace mjp

#endif  // KERNELS_CUDA_SAMPLER_CONDITIONING_CUH_
