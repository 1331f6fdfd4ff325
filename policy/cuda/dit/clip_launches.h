#ifndef POLICY_CUDA_DIT_CLIP_LAUNCHES_H_
#define POLICY_CUDA_DIT_CLIP_LAUNCHES_H_

#include "policy/cuda/dit/device_dit.h"

namespace mjp {

// CLIP's vision tower as launches, and their memory. Of the last layer it makes what the class
// tokens need: their queries, against the keys and values of all tokens.
class ClipLaunches {
 public:
  // features (frames, width): the class tokens, which Run gives.
  ClipLaunches(const DeviceVision& weights, const ClipConfig& clip, Format format, int frames,
               float* features, DeviceArena& arena);

  // (frames, 1 + patches, patch_pitch()), storage: normalised pixels as PrepareArgs::patch has
  // them.
  void* input() const { return input_; }
  int patch_pitch() const { return patch_pitch_; }
  size_t FrameBytes() const { return element_ * clip_.VisionTokens() * patch_pitch_; }
  void Run(cudaStream_t stream) const { launches_.Run(stream); }

 private:
  void Embed(const DeviceVision& weights);
  // Of the first `queries` tokens of each picture.
  TokenAttentionArgs Attention(int queries) const;
  void Layer(const DeviceClipLayer& layer, const DeviceLayerNorm& next_norm);
  void LastLayer(const DeviceClipLayer& layer, float* features);

  ClipConfig clip_;
  int frames_, tokens_, patch_pitch_;
  size_t element_;
  TokenLaunches launches_;
  TokenStream stream_;
  void *input_, *qkv_, *heads_, *hidden_;
  void *branch_, *normed_;  // (frames, width): of the last layer
};

}  // namespace mjp

#endif  // POLICY_CUDA_DIT_CLIP_LAUNCHES_H_
