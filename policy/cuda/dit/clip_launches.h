#ifndef POLICY_CUDA_DIT_CLIP_LAUNCHES_H_
#define POLICY_CUDA_DIT_CLIP_LAUNCHES_H_

#include "policy/cuda/dit/device_dit.h"

namespace mjp {

// CLIP's vision tower as launches, and their memory.
class ClipLaunches {
 public:
  ClipLaunches(const DeviceVision& weights, const ClipConfig& clip, Format format, int frames,
               DeviceArena& arena);

  void* input() const { return input_; }  // (frames, image, image, 8), storage, normalised
  // Enqueues the tower, and features (frames, width): the class tokens.
  void Run(float* features, cudaStream_t stream) const;

 private:
  void Embed(const DeviceVision& weights);
  // Adds the branch, and makes what the next layer reads by `norm`; null: adds alone.
  void Norm(const DeviceLayerNorm* norm, const void* branch, float* normed, void* y);
  void Layer(const DeviceClipLayer& layer, bool first);

  ClipConfig clip_;
  int frames_, rows_;
  size_t element_;
  TokenLaunches launches_;
  void *input_, *patches_, *y_, *qkv_, *heads_, *branch_, *hidden_;
  float* x_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_CLIP_LAUNCHES_H_
